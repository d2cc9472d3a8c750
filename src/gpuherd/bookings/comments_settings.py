"""The [bookings.comments] table of gpuherd.toml: taking over, and writing, the comments.json of an older page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

from gpuherd.bookings.refusals import Unfit
from gpuherd.bookings.times import read_zone
from gpuherd.model.errors import Misconfigured

__all__ = ["CommentsSettings"]


class CommentsSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The ``[bookings.comments]`` table: read and write the comments.json of an older page."""

    file: Annotated[Path | None, Meta(description="A comments.json whose entries become bookings.")] = None
    watch: Annotated[
        bool,
        Meta(
            description="Follow the file while the hub runs: a changed entry changes its booking, a removed entry "
            "ends it. Otherwise the file is read when the hub starts, and removed entries end "
            "nothing."
        ),
    ] = False
    zone: Annotated[
        Annotated[str, Meta(max_length=64)] | None,
        Meta(description="IANA time zone of the dates in the files. Default: bookings.zone."),
    ] = None
    export: Annotated[
        Path | None,
        Meta(
            description="File that the hub keeps up to date with all bookings, for tools that read comments.json."
        ),
    ] = None

    def check(self) -> None:
        """Raise ``Misconfigured`` for what cannot be meant."""
        if self.file is None and self.export is None:
            raise Misconfigured("set file, to read a comments.json, or export, to write one")
        if self.file is None and self.watch:
            raise Misconfigured("watch: needs file, the file to watch")
        if self.file is not None and self.file == self.export:
            raise Misconfigured(
                "export: is the file that the hub reads; choose another file, or the hub would read its "
                "own output"
            )
        if self.zone is not None:
            try:
                read_zone(self.zone)
            except Unfit as error:
                raise Misconfigured(f"zone: {error}") from error
