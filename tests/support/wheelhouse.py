"""Wheels of what is installed here, so that installing can be tried for real without a package index."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.tags import Tag, parse_tag
from packaging.utils import canonicalize_name

__all__ = ["pack_wheels"]

_OF_THIS_INSTALLATION = ("INSTALLER", "REQUESTED", "direct_url.json")


def pack_wheels(requirements: Iterable[str], folder: Path) -> list[str]:
    """Pack installed distributions, and in turn all that these need, into wheels; gives their names.

    They hold the installed files: the same code and metadata, and compiled code that counts wherever it is installed,
    so that neither an installation nor a first start has to compile hundreds of files again.
    """
    folder.mkdir(parents=True, exist_ok=True)
    waiting = [Requirement(text) for text in requirements]
    done: dict[str, set[str]] = {}
    while waiting:
        wanted = waiting.pop()
        name = canonicalize_name(wanted.name)
        extras = done.get(name)
        if extras is not None and wanted.extras <= extras:
            continue
        found = distribution(wanted.name)
        if extras is None:
            _pack(found, folder)
        done[name] = (extras or set()) | wanted.extras
        for text in found.requires or ():
            needed = Requirement(text)
            chosen = ("", *wanted.extras)
            if needed.marker is None or any(needed.marker.evaluate({"extra": extra}) for extra in chosen):
                waiting.append(needed)
    return sorted(done)


def _pack(found: Distribution, folder: Path) -> None:
    tags = {
        tag
        for line in (found.read_text("WHEEL") or "").splitlines()
        if line.startswith("Tag:")
        for tag in parse_tag(line.removeprefix("Tag:").strip())
    }
    name = found.metadata["Name"].replace("-", "_").replace(".", "_")
    with zipfile.ZipFile(folder / f"{name}-{found.version}-{_joined(tags)}.whl", "w") as wheel:
        for file in found.files or ():
            source = Path(str(file.locate()))
            if ".." in file.parts or not source.is_file() or file.name in _OF_THIS_INSTALLATION:
                continue
            if source.suffix == ".pyc":
                wheel.writestr(file.as_posix(), _unchecked(source.read_bytes()))
            else:
                wheel.write(source, file.as_posix())


def _unchecked(compiled: bytes) -> bytes:
    """Mark compiled code as good without a look at its source's time (PEP 552), which is another after installing."""
    return compiled[:4] + (1).to_bytes(4, "little") + compiled[8:]


def _joined(tags: set[Tag]) -> str:
    parts = [sorted({part(tag) for tag in tags}) for part in (_interpreter, _abi, _platform)]
    return "-".join(".".join(part) for part in parts)


def _interpreter(tag: Tag) -> str:
    return tag.interpreter


def _abi(tag: Tag) -> str:
    return tag.abi


def _platform(tag: Tag) -> str:
    return tag.platform
