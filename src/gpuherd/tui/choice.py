"""Screens above the list: choosing one of a few, and the keys explained."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

__all__ = ["Choice", "Help"]

_BOX = """
    align: center middle;
    & > Vertical, & > VerticalScroll {
        width: 64; max-width: 100%; height: auto; max-height: 100%;
        background: $panel; border: round $primary; padding: 0 1;
    }
    & Static { background: $panel; color: $foreground; }
"""

KEYS = (
    ("↑ ↓  j k", "move; PgUp PgDn Home End too"),
    ("Enter", "details of a GPU or node; a user's GPUs"),
    ("← →  Space", "collapse and expand; - and + for all"),
    ("Esc", "close details, end a search, show all"),
    ("1 2 3 4 Tab", "herd, processes, users, bookings"),
    ("/", "search as you type: node, type, user, state"),
    ("s  S", "sort by …; reverse the order"),
    ("f", "show only free, held idle, faults, mine"),
    ("g", "group by node, type, user, or no grouping"),
    ("n", "only the node under the cursor, or all"),
    ("p", "pause updates"),
    ("r", "reconnect now"),
    ("t", "dark or light"),
    ("?  q", "this help; quit"),
)


class Choice(ModalScreen[str | None]):
    """One of a few; the key that opened it goes on to the next, Enter takes it, Esc leaves everything as it is."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "leave", show=False),
        Binding("j", "down", show=False),
        Binding("k", "up", show=False),
    ]
    DEFAULT_CSS = f"""
    Choice {{ {_BOX}
        & OptionList, & OptionList:focus {{
            background: $panel; background-tint: transparent; border: none; height: auto; padding: 0;
        }}
    }}
    """

    def __init__(self, title: str, options: Mapping[str, str], chosen: str, key: str) -> None:
        super().__init__()
        self._title = title
        self._options = options
        self._chosen = chosen
        self._key = key

    def compose(self) -> ComposeResult:
        """Lay it out."""
        with Vertical():
            yield Static(Text(self._title, style="bold"))
            texts = enumerate(self._options.items(), 1)
            yield OptionList(*(Option(Text(f"{place} {text}"), id=name) for place, (name, text) in texts))

    def on_mount(self) -> None:
        """Begin at what is chosen now."""
        self.query_one(OptionList).highlighted = list(self._options).index(self._chosen)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Take it."""
        self.dismiss(event.option_id)

    def action_down(self) -> None:
        """Go on to the next."""
        self.query_one(OptionList).action_cursor_down()

    def action_up(self) -> None:
        """Go back by one."""
        self.query_one(OptionList).action_cursor_up()

    def action_leave(self) -> None:
        """Leave everything as it is."""
        self.dismiss(None)

    def on_key(self, event: events.Key) -> None:
        """Take one by its number, or go on with the key that led here."""
        character, names = event.character or "", list(self._options)
        if character == self._key:
            event.stop()
            self.action_down()
        elif character in "123456789"[: len(names)] and character:
            event.stop()
            self.dismiss(names[int(character) - 1])


class Help(ModalScreen[None]):
    """The keys, explained; where they do not fit, they scroll."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark,enter", "leave", show=False),
        Binding("j", "move(1)", show=False),
        Binding("k", "move(-1)", show=False),
    ]
    DEFAULT_CSS = f"""
    Help {{ {_BOX}
        & > VerticalScroll {{ scrollbar-size-vertical: 1; }}
    }}
    """

    def __init__(self, legend: Text) -> None:
        super().__init__()
        self._legend = legend

    def compose(self) -> ComposeResult:
        """Lay it out."""
        text = Text()
        for keys, meaning in KEYS:
            text.append(f"{keys:<13}", style="bold")
            text.append(f"{meaning}\n")
        with VerticalScroll():
            yield Static(text)
            yield Static(self._legend)

    def on_resize(self) -> None:
        """Say that there is more than is seen, as soon as that is known."""
        self.call_after_refresh(self._say_more)

    def _say_more(self) -> None:
        box = self.query_one(VerticalScroll)
        box.border_subtitle = "↑ ↓ more" if box.max_scroll_y > 0 else ""

    def action_move(self, by: int) -> None:
        """Go on or back by lines."""
        self.query_one(VerticalScroll).scroll_relative(y=by, animate=False)

    def action_leave(self) -> None:
        """Back to the list."""
        self.dismiss(None)

    def on_click(self) -> None:
        """Back to the list."""
        self.dismiss(None)
