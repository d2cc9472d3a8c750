"""Which files are wanted, and what goes into each."""

from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec import Struct

from gpuherd.client.herd_views import Herd
from gpuherd.client.line import plain_json
from gpuherd.wiring.exporting.page import PageSettings, herd_page
from gpuherd.wiring.exporting.tables import full_table, load_table

__all__ = ["PAGE", "SeenHerd", "Targets", "herd_files"]

PAGE = "index.html"


class SeenHerd(Struct, frozen=True, kw_only=True):
    """The herd at one moment, and as it was told: a newer hub may tell more than we understand."""

    herd: Herd
    answer: bytes
    """JSON."""


class Targets(Struct, frozen=True, kw_only=True):
    """Where to write; none is not wanted."""

    html: Path | None = None
    """A folder."""
    csv: Path | None = None
    full_csv: Path | None = None
    json: Path | None = None


def herd_files(seen: SeenHerd, targets: Targets, page: PageSettings) -> dict[Path, bytes]:
    """Write everything that is wanted into memory. May take a second for thousands of devices."""
    contents: dict[Path, bytes] = {}
    if targets.html is not None:
        tables = (targets.csv, targets.full_csv, targets.json)
        beside = [table.name for table in tables if table is not None and table.parent == targets.html]
        page = msgspec.structs.replace(page, downloads=tuple(beside))
        contents[targets.html / PAGE] = herd_page(seen.herd, page)
    if targets.csv is not None:
        contents[targets.csv] = load_table(seen.herd)
    if targets.full_csv is not None:
        contents[targets.full_csv] = full_table(seen.herd)
    if targets.json is not None:
        contents[targets.json] = (plain_json(seen.answer) + "\n").encode()
    return contents
