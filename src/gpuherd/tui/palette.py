"""Colours of states: colour tells availability, the length of a bar tells load; a sign and a word say it too."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from rich.style import Style
from textual.theme import Theme

__all__ = ["PALETTES", "Palette", "Pen", "looks_light"]


class Palette(Struct, frozen=True, kw_only=True):
    """The colours of one look; the states' are those of the web page."""

    name: str
    is_dark: bool
    background: str
    raised: str
    """Of bars at the edges."""
    track: str
    """Of the empty part of a bar."""
    cursor: str
    text: str
    muted: str
    accent: str
    states: Mapping[str, str]

    def theme(self) -> Theme:
        """Give the same colours to the toolkit's own parts, such as scroll bars and the search line."""
        return Theme(
            name=f"gpuherd-{self.name}",
            primary=self.accent,
            foreground=self.text,
            background=self.background,
            surface=self.background,
            panel=self.raised,
            dark=self.is_dark,
            variables={
                "scrollbar": self.track,
                "scrollbar-hover": self.muted,
                "scrollbar-active": self.muted,
                "scrollbar-background": self.background,
                "scrollbar-background-hover": self.background,
                "scrollbar-background-active": self.background,
                "scrollbar-corner-color": self.background,
                "input-selection-background": self.cursor,
            },
        )


PALETTES: Mapping[str, Palette] = {
    "dark": Palette(
        name="dark",
        is_dark=True,
        background="#111418",
        raised="#1b2027",
        track="#2a3038",
        cursor="#26323f",
        text="#e4e8ed",
        muted="#98a1ab",
        accent="#7fb2ff",
        states={
            "free": "#5ffbd1",
            "live": "#5ffbd1",
            "busy": "#4f7fca",  # the page's #3b65a5, a step lighter: signs are thinner than tiles
            "held": "#f2cb5e",
            "booked": "#d37bf7",
            "fault": "#ea5a46",
        },
    ),
    "light": Palette(
        name="light",
        is_dark=False,
        background="#ffffff",
        raised="#eef1f5",
        track="#dde3ea",
        cursor="#dcebff",
        text="#14181d",
        muted="#59626d",
        accent="#0b57b8",
        states={
            "free": "#2f8560",
            "live": "#2f8560",
            "busy": "#0c3d66",
            "held": "#ca6e00",
            "booked": "#b54ee5",
            "fault": "#991026",
        },
    ),
}


class Pen:
    """Styles to draw with. ``is_old``: everything in grey. ``is_plain``: no colours, only bold, dim and reverse."""

    def __init__(self, palette: Palette, *, is_old: bool = False, is_plain: bool = False) -> None:
        self.palette = palette
        self.is_old = is_old
        self.is_plain = is_plain
        muted = palette.muted
        self.background = Style(bgcolor=palette.background)
        self.raised = Style(bgcolor=palette.raised)
        self.text = Style(color=muted if is_old else palette.text)
        self.strong = self.text + Style(bold=True)
        self.muted = Style(color=muted, dim=is_plain)
        self.accent = Style(color=muted if is_old else palette.accent, bold=True)
        self.cursor = Style(reverse=True) if is_plain else Style(bgcolor=palette.cursor)
        self._states = {
            state: Style(color=muted if is_old else colour) for state, colour in palette.states.items()
        }
        self.track = Style(color=palette.track, dim=is_plain)

    def state(self, state: str) -> Style:
        """Give the style of a state's sign."""
        return self._states.get(state, self.muted)


def looks_light(environment: Mapping[str, str]) -> bool:
    """Tell whether the terminal says that its background is light; most say nothing, then it is taken for dark."""
    background = environment.get("COLORFGBG", "").rpartition(";")[2]
    return background in ("7", "15")
