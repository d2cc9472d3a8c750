"""Joins what old files say with the gpuherd.toml that is there, checks the result and replaces the file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from gpuherd.bookings.whole_files import keep_copy, replace_file
from gpuherd.model.errors import Failed, Misconfigured
from gpuherd.wiring.importing.draft import Draft
from gpuherd.wiring.importing.reading import KeysEntry, Note, Reading
from gpuherd.wiring.importing.recognise import read_file
from gpuherd.wiring.importing.wishes import Wishes

__all__ = ["Outcome", "take_over"]

_NEW_MODE = 0o644


class Outcome(Struct, frozen=True, kw_only=True):
    """What came of it. ``added`` is the text that gpuherd.toml gained, empty if it has everything already."""

    output: Path
    readings: tuple[Reading, ...]
    remarks: tuple[str, ...]
    added: tuple[str, ...]
    is_written: bool
    copy: Path | None = None
    """The file as it was before, if there was one."""

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
    found = [(entry, reading.file) for reading in readings for entry in reading.entries]
    for entry, file in sorted(
        found, key=lambda each: isinstance(each[0], KeysEntry)
    ):  # which need their table
        draft.add(entry, file)
    is_changed = draft.text != before
    copy = _write(output, draft.text) if is_changed and not dry_run else None
    return Outcome(
        output=output,
        readings=readings,
        remarks=tuple(draft.remarks),
        added=tuple(draft.added),
        is_written=is_changed and not dry_run,
        copy=copy,
    )


def _read(file: Path, wishes: Wishes) -> Reading:
    try:
        return read_file(file, wishes)
    except (Misconfigured, Failed) as error:
        return Reading(file=str(file), what=None, notes=(Note(None, str(error), False),))


def _write(output: Path, text: str) -> Path | None:
    """Replace the file, and give the copy of the one that was there."""
    place = output.resolve()
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        copy = keep_copy(place) if place.exists() else None
        replace_file(place, text.encode(), mode=_NEW_MODE)
    except OSError as error:
        raise Failed(f"{output}: cannot be written ({error.strerror}); nothing was changed") from error
    return copy


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
