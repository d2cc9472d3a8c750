"""The files that [bookings] names, by their full paths: relative ones begin where gpuherd.toml lies."""

from __future__ import annotations

from pathlib import Path

from msgspec import structs

from gpuherd.bookings.settings import BookingSettings
from gpuherd.discovery.files import located

__all__ = ["with_full_paths"]


def with_full_paths(settings: BookingSettings, folder: Path) -> BookingSettings:
    """Give the settings with every file by its full path."""

    def full(file: Path | None) -> Path | None:
        return None if file is None else located(file, folder).absolute()

    comments = settings.comments
    return structs.replace(
        settings,
        hooks=tuple(
            structs.replace(hook, secret_file=full(hook.secret_file), ca_file=full(hook.ca_file))
            for hook in settings.hooks
        ),
        comments=None
        if comments is None
        else structs.replace(comments, file=full(comments.file), export=full(comments.export)),
    )
