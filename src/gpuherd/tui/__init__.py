"""The herd on a full terminal, live: `gpuherd top`."""

from gpuherd.tui.app import TopApp
from gpuherd.tui.palette import looks_light

__all__ = ["TopApp", "looks_light"]
