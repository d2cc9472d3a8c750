"""The ``[export]`` table of gpuherd.toml."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, Struct

__all__ = ["ExportSettings"]


class ExportSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The ``[export]`` table: files that the hub writes regularly, for a web server or other programs."""

    html: Annotated[
        Path | None, Meta(description="Existing folder in which the hub writes `index.html`.")
    ] = None
    csv: Annotated[
        Path | None, Meta(description="File in the format of the older tool's `load_data.csv`.")
    ] = None
    full_csv: Annotated[Path | None, Meta(description="Table with everything, one row per device.")] = None
    json: Annotated[Path | None, Meta(description="The herd in the format of `GET /api/v1/fleet`.")] = None
    every_seconds: Annotated[
        float, Meta(ge=5, le=86_400, description="How often to write the files, in seconds.")
    ] = 60.0
    reload_seconds: Annotated[
        Annotated[int, Meta(ge=5, le=86_400)] | None,
        Meta(description="How often browsers reload the page, in seconds. Default: never."),
    ] = None
    privacy: Annotated[
        Literal["public", "member"],
        Meta(description="What the files contain: pseudonyms (public) or names of users (member)."),
    ] = "public"

    @property
    def is_wanted(self) -> bool:
        """Whether anything is to be written at all."""
        return any(file is not None for file in (self.html, self.csv, self.full_csv, self.json))
