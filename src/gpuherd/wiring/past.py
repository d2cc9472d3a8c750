"""What a hub remembers with, as gpuherd.toml says."""

from __future__ import annotations

from pathlib import Path

from msgspec import structs

from gpuherd.agent.spec import resolve
from gpuherd.api.remembering import PastOutfit
from gpuherd.history.settings import EmbeddedSettings, HistorySettings, UsageSettings
from gpuherd.wiring.catalog import SAMPLE_STORES
from gpuherd.wiring.ways.surroundings import located

__all__ = ["past_outfit"]


def past_outfit(history: HistorySettings, usage: UsageSettings, folder: Path) -> PastOutfit:
    """Make it; files that the settings name are looked for from ``folder``. Opens nothing."""
    if history.folder is not None:
        history = structs.replace(history, folder=folder / history.folder)
    if not isinstance(history.store, EmbeddedSettings):
        history = structs.replace(history, store=located(history.store, folder))
    name = str(history.store.__struct_config__.tag)
    return PastOutfit(history, usage, resolve(SAMPLE_STORES[name]))
