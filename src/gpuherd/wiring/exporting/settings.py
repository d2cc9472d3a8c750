"""The ``[export]`` table of gpuherd.toml."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, Struct

__all__ = ["ExportSettings"]


class ExportSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The ``[export]`` table: files that the hub writes again and again, for a web server or for other programs."""

    html: Annotated[
        Path | None, Meta(description="Folder, there already, in which `index.html` is kept up to date.")
    ] = None
    csv: Annotated[
        Path | None, Meta(description="File in the shape of the older tool's `load_data.csv`.")
    ] = None
    full_csv: Annotated[Path | None, Meta(description="Table with everything, one row a device.")] = None
    json: Annotated[Path | None, Meta(description="The herd as `GET /api/v1/fleet` tells it.")] = None
    every_seconds: Annotated[float, Meta(ge=5, le=86_400, description="How often they are written.")] = 60.0
    reload_seconds: Annotated[
        Annotated[int, Meta(ge=5, le=86_400)] | None,
        Meta(description="How often a browser that shows the page loads it anew; default: not by itself."),
    ] = None
    privacy: Annotated[
        Literal["public", "member"],
        Meta(description="Whom the files are for: public has pseudonyms, member the names of users."),
    ] = "public"

    @property
    def is_wanted(self) -> bool:
        """Whether anything is to be written at all."""
        return any(file is not None for file in (self.html, self.csv, self.full_csv, self.json))
