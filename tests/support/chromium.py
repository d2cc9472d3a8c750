"""Which Chromium the tests use, and how it is started."""

from __future__ import annotations

from pathlib import Path

__all__ = ["CHROMIUM", "FLAGS"]

_SHELL = Path("/usr/bin/chromium-headless-shell")
_FULL = Path("/usr/bin/chromium")
CHROMIUM = _FULL if _FULL.exists() and not _SHELL.exists() else _SHELL
"""The same engine without windows and extensions: it needs two thirds of the processor time."""
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
