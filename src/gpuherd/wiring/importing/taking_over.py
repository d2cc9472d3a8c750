"""Joins what old files say with the gpuherd.toml that is there, checks the result and replaces the file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from gpuherd.model.errors import Failed, Misconfigured
from gpuherd.wiring.importing.draft import Draft
from gpuherd.wiring.importing.reading import Note, Reading
from gpuherd.wiring.importing.recognise import read_file
from gpuherd.wiring.importing.replacing import replace_file
from gpuherd.wiring.importing.wishes import Wishes

__all__ = ["Outcome", "take_over"]


class Outcome(Struct, frozen=True, kw_only=True):
    """What came of it. ``added`` is the text that gpuherd.toml gained, empty if it has everything already."""

    output: Path
    readings: tuple[Reading, ...]
    remarks: tuple[str, ...]
    added: tuple[str, ...]
    is_written: bool

    @property
    def understood_any(self) -> bool:
        """Tell whether anything at all was of use."""
        return any(reading.entries for reading in self.readings)


def take_over(files: Sequence[Path], output: Path, wishes: Wishes, *, dry_run: bool = False) -> Outcome:
    """Read ``files`` and write or update ``output``; ``Misconfigured`` if that is no good configuration to begin with.

    Nothing that stands in ``output`` is changed or moved; what is there already is not written again.
    """
    readings = tuple(_read(file, wishes) for file in files)
    before = _text_of(output)
    draft = Draft(before, output)
    for reading in readings:
        for entry in reading.entries:
            draft.add(entry, reading.file)
    is_changed = draft.text != before
    if is_changed and not dry_run:
        replace_file(output, draft.text)
    return Outcome(
        output=output,
        readings=readings,
        remarks=tuple(draft.remarks),
        added=tuple(draft.added),
        is_written=is_changed and not dry_run,
    )


def _read(file: Path, wishes: Wishes) -> Reading:
    try:
        return read_file(file, wishes)
    except (Misconfigured, Failed) as error:
        return Reading(file=str(file), what=None, notes=(Note(None, str(error), False),))


def _text_of(output: Path) -> str:
    try:
        return output.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError as error:
        raise Misconfigured(f"{output}: is not UTF-8 text (byte {error.start}); save it as UTF-8") from error
    except OSError as error:
        raise Misconfigured(
            f"{output}: cannot be read ({error.strerror}); choose another with --output"
        ) from error
