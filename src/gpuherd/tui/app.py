"""`gpuherd top`: the herd on a full terminal, live."""

from __future__ import annotations

import asyncio
import signal
import sys
import termios
import time
from collections.abc import Callable, Mapping
from datetime import tzinfo
from typing import Any, ClassVar

import msgspec
from rich.segment import Segment
from rich.text import Text
from textual import events, on
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.filter import Monochrome, NoColor
from textual.message import Message
from textual.widgets import Input

from gpuherd.client.live import Condition, Feed, News, Shut
from gpuherd.client.live_herd import LiveHerd
from gpuherd.client.live_messages import HerdChange, OwnProcesses
from gpuherd.client.live_nodes import LiveNode
from gpuherd.client.states import STATES, sign_of, state_word
from gpuherd.client.views import Session
from gpuherd.model.errors import GpuherdError
from gpuherd.tui.answers import Answers, freshness, totals_line
from gpuherd.tui.board import Board
from gpuherd.tui.booking_list import BookingList
from gpuherd.tui.cells import Piece, fit
from gpuherd.tui.choice import Choice, Help
from gpuherd.tui.detail import detail
from gpuherd.tui.frame import chosen, keys_line, tabs_line
from gpuherd.tui.herd_list import Group, HerdList
from gpuherd.tui.listing import Listing, Scene, heading
from gpuherd.tui.palette import PALETTES, Pen
from gpuherd.tui.process_list import ProcessList
from gpuherd.tui.strips import Pane, Strips
from gpuherd.tui.user_list import Holding, UserList, left_out
from gpuherd.tui.watch import Watch
from gpuherd.tui.wish import FILTERS, GROUPINGS, SORTINGS, Wish

__all__ = ["TopApp"]

LEAST_DRAW_SECONDS = 1.0
"""Nothing is drawn more often than this without a key being pressed: terminals may be far away."""
MOST_BUILDING = 10
"""Lists that change their order by themselves are made anew after ten times as long as that takes."""
WIDE_CELLS = 112
DETAIL_CELLS = 46
LOW_ROWS = 20
LEADING_ACTIONS = frozenset({"search", "sort", "filter", "group", "help"})


class TopApp(App[GpuherdError]):
    """The screen. It ends with the error that made it end, if one did."""

    ENABLE_COMMAND_PALETTE = False
    TITLE = "gpuherd top"
    CSS = """
    Screen { background: $background; }
    ModalScreen { background: $background 50%; }
    #top { height: 3; }
    #tabs { height: 1; }
    #heading { height: 1; }
    #keys { height: 1; }
    #body { height: 1fr; }
    #detail { width: 46; height: 1fr; display: none; border-left: vkey $panel; }
    #search { height: 1; border: none; padding: 0 2; display: none; background: $panel; }
    #search:focus { border: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", show=False),
        Binding("ctrl+c", "interrupt", show=False, priority=True),
        Binding("ctrl+z", "suspend_process", show=False),
        Binding("1", "view(0)", show=False),
        Binding("2", "view(1)", show=False),
        Binding("3", "view(2)", show=False),
        Binding("4", "view(3)", show=False),
        Binding("tab", "view_next(1)", show=False, priority=True),
        Binding("shift+tab", "view_next(-1)", show=False, priority=True),
        Binding("slash", "search", show=False, priority=True),
        Binding("s", "sort", show=False, priority=True),
        Binding("S", "reverse", show=False),
        Binding("f", "filter", show=False, priority=True),
        Binding("g", "group", show=False, priority=True),
        Binding("n", "node", show=False),
        Binding("p", "pause", show=False),
        Binding("r", "reconnect", show=False),
        Binding("t", "look", show=False),
        Binding("minus", "fold_all", show=False),
        Binding("plus,equals_sign", "unfold_all", show=False),
        Binding("question_mark,f1", "help", show=False, priority=True),
        Binding("escape", "step_back", show=False),
    ]

    class Arrived(Message):
        """The feed has news; told from its thread."""

    def __init__(
        self,
        feed: Feed,
        *,
        me: str,
        look: str = "dark",
        monotonic: Callable[[], float] = time.monotonic,
        zone: tzinfo | None = None,
    ) -> None:
        """``me``: the local account's name, by which processes are taken for mine where the hub knows no better."""
        super().__init__()
        self.animation_level = "none"
        self._filters = [NoColor() if isinstance(each, Monochrome) else each for each in self._filters]
        self.watched = Watch(feed, monotonic)
        self._zone = zone
        self._palette = PALETTES[look]
        self._wish = Wish(me=frozenset({me}), my_names=frozenset({me}))
        self._listings: tuple[Listing, ...] = (HerdList(), ProcessList(), UserList(), BookingList())
        self._view = 0
        self._folded: set[str] = set()
        self._answers = Answers()
        self._drawn_at = float("-inf")
        self._is_draw_planned = False
        self._built_for: object = None
        self._build_again_at = float("-inf")
        self._is_detailed = False
        self._is_laid_out = False
        self._top_lines = 0
        self._pen = Pen(self._palette, is_plain=self.no_color)
        pen = self._current_pen
        self._top = Strips(self._paint_top, pen, name="top")
        self._tabs = Strips(self._paint_tabs, pen, name="tabs", is_raised=True)
        self._heading = Strips(self._paint_heading, pen, name="heading")
        self._board = Board(self._listings[0], self._scene(), pen, lambda: self.watched.emptiness)
        self._detail = Pane(pen, name="detail")
        self._search = Input(placeholder="search: node, type, user, state", id="search", compact=True)
        self._search.cursor_blink = False
        self._keys = Strips(self._paint_keys, pen, name="keys", is_raised=True)
        for palette in PALETTES.values():
            self.register_theme(palette.theme())
        self.theme = f"gpuherd-{look}"

    @property
    def herd(self) -> LiveHerd:
        """The herd as it is known."""
        return self.watched.herd

    # -- layout ------------------------------------------------------------------------------------------------

    def compose(self) -> ComposeResult:
        """Lay the screen out."""
        yield self._top
        yield self._tabs
        yield self._heading
        with Horizontal(id="body"):
            yield self._board
            yield self._detail
        yield self._search
        yield self._keys

    def on_mount(self) -> None:
        """Begin to listen."""
        self._is_laid_out = True
        self._board.focus()
        self._fit()
        self.set_interval(1.0, self._look_at_clock)
        if not self.is_headless:
            loop = asyncio.get_running_loop()
            for number in (signal.SIGTERM, signal.SIGHUP):
                loop.add_signal_handler(number, self.exit, None, 128 + number)
        self.watched.feed.start(lambda: self.post_message(self.Arrived()))

    def on_unmount(self) -> None:
        """Stop listening."""
        self.watched.feed.stop()

    def _current_pen(self) -> Pen:
        return self._pen

    def on_resize(self, event: events.Resize) -> None:
        """Fit everything to another size."""
        if self._is_laid_out:
            self._fit()

    def _fit(self) -> None:
        """Show what there is room for: low screens get less on top, narrow ones details instead of the list."""
        width = self.size.width
        self._fit_top()
        is_wide = width >= WIDE_CELLS
        self._detail.display = self._is_detailed
        self._board.display = is_wide or not self._is_detailed
        self._heading.display = self._board.display
        self._detail.styles.width = min(72, max(DETAIL_CELLS, width // 3)) if is_wide else "1fr"
        self._detail.styles.border_left = (
            ("vkey", self._palette.track) if is_wide else ("none", self._palette.track)
        )
        self.call_after_refresh(self._draw, is_all=True)

    def _fit_top(self) -> None:
        """Give the lines on top their room: trouble is always told, the answers where there is enough."""
        height = self.size.height
        answers = 0 if height < LOW_ROWS else 2 if height > 24 else 1
        lines = 1 + answers if not self.watched.trouble else max(2, 1 + answers)
        if self._top_lines != lines:
            self._top_lines = lines
            self._top.styles.height = lines

    # -- news --------------------------------------------------------------------------------------------------

    @on(Arrived)
    def _take_news(self) -> None:
        for news in self.watched.feed.take():
            self._take(news)

    def _take(self, news: News) -> None:
        match news:
            case HerdChange():
                if self.watched.apply(news):
                    self._plan_draw()
            case OwnProcesses():
                self.herd.apply_own(news)
                self._plan_draw()
            case Condition():
                self.watched.condition = news
                self._look_at_clock()
            case Session():
                if news.account is not None:
                    names = {news.account.name, news.account.display_name} - {""}
                    me = frozenset({news.account.name})
                    self._wish = msgspec.structs.replace(self._wish, me=me, my_names=frozenset(names))
            case Shut():
                self.exit(news.error, return_code=1)

    def _plan_draw(self) -> None:
        """Draw soon, and not more often than once a second."""
        if self._is_draw_planned:
            return
        wait = self._drawn_at + LEAST_DRAW_SECONDS * 0.9 - self.watched.monotonic()
        if wait <= 0:
            self._draw()
        else:
            self._is_draw_planned = True
            self.set_timer(wait, self._draw)

    def _look_at_clock(self) -> None:
        """Notice what grows old while nothing comes, and a terminal that is gone."""
        if not self.is_headless and not _has_terminal():
            self.exit(None, return_code=128 + signal.SIGHUP)
        is_old = self.watched.is_old
        self._fit_top()
        if is_old != self._pen.is_old:
            self._repaint()
        else:
            self._top.renew()
            self._tabs.renew()

    def _scene(self) -> Scene:
        return Scene(herd=self.herd, wish=self._wish, now=self.watched.now, zone=self._zone)

    # -- drawing -----------------------------------------------------------------------------------------------

    def _draw(self, *, is_all: bool = False) -> None:
        self._is_draw_planned = False
        self._drawn_at = self.watched.monotonic()
        if self.watched.is_old != self._pen.is_old:
            self._pen = Pen(self._palette, is_old=self.watched.is_old, is_plain=self.no_color)
            is_all = True
        scene, listing = self._scene(), self._listings[self._view]
        board = self._board
        is_moving = self._wish.sorting in ("util", "memory") or self._view in (1, 2)
        built_for = (self.herd.version, self._wish, self._view, tuple(sorted(self._folded)))
        if built_for != self._built_for or (is_moving and self._drawn_at >= self._build_again_at):
            self._built_for = built_for
            began = time.perf_counter()
            lines = listing.lines(scene, self._folded)
            # In a herd of tens of thousands, the order may lag a little rather than take all of the time.
            self._build_again_at = self._drawn_at + MOST_BUILDING * (time.perf_counter() - began)
            board.show(listing, scene, lines)
        else:
            board.renew(scene)
        self._answers.count(self.herd)
        self._fit_top()
        for strips in (self._top, self._tabs, self._heading, self._keys):
            strips.repaint() if is_all else strips.renew()
        if is_all:
            board.repaint()
        self._draw_detail()

    def _repaint(self) -> None:
        self._pen = Pen(self._palette, is_old=self.watched.is_old, is_plain=self.no_color)
        self._draw(is_all=True)

    def _draw_detail(self) -> None:
        if not self._is_detailed:
            return
        board = self._board
        subject = None if board.line is None else board.listing.subject(board.line)
        pen = self._pen
        if subject is None:
            self._detail.show([[Segment(" no more details for this line", pen.muted)]])
            return
        self._detail.show(
            detail(subject, self._detail.scrollable_content_region.width or DETAIL_CELLS, pen, self._scene())
        )

    def _paint_top(self, width: int) -> list[list[Piece]]:
        pen, watched = self._pen, self.watched
        loud = Pen(self._palette, is_plain=self.no_color)  # what is wrong is not to be overlooked
        lines = [totals_line(self.herd, freshness(watched, loud, width), width, pen)]
        if watched.trouble:
            lines.append([Segment(fit(f"  {watched.trouble}", width), loud.state("held"))])
        if self.herd.tick is not None:
            lines.append(self._answers.free_line(width, pen))
            lines.append(self._answers.held_line(width, pen, watched.now))
        return lines

    def _paint_tabs(self, width: int) -> list[list[Piece]]:
        wish = self._wish
        name = next((node.name for node in self.herd.nodes if node.id == wish.node_id), "a node that is gone")
        said = chosen(wish, name, is_herd=self._view == 0)
        if isinstance(self._listings[self._view], UserList):
            said = " · ".join(part for part in (said, left_out(self.herd)) if part)
        titles = [listing.title for listing in self._listings]
        return [tabs_line(titles, self._view, said, self.watched.feed.place, width, self._pen)]

    def _paint_heading(self, width: int) -> list[list[Piece]]:
        listing = self._listings[self._view]
        return [
            heading(listing.columns(self._board.width if self._is_laid_out else width, self._wish), self._pen)
        ]

    def _paint_keys(self, width: int) -> list[list[Piece]]:
        return [keys_line(width, self._pen)]

    # -- keys --------------------------------------------------------------------------------------------------

    def _want(self, **changes: object) -> None:
        self._wish = msgspec.structs.replace(self._wish, **changes)
        self._draw()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Leave keys that lead elsewhere alone where text is typed or something is chosen.

        They are taken before all others, so that what is typed ahead, or comes in one piece over a slow line, goes
        where they lead.
        """
        is_elsewhere = len(self.screen_stack) > 1 or self.screen.focused is self._search
        return not (is_elsewhere and action in LEADING_ACTIONS)

    def action_interrupt(self) -> None:
        """End as an interrupt does."""
        self.exit(None, return_code=130)

    def action_view(self, place: int) -> None:
        """Show another list."""
        self._view = place
        self._draw()

    def action_view_next(self, by: int) -> None:
        """Show the list beside."""
        if len(self.screen_stack) == 1:
            self.action_view((self._view + by) % len(self._listings))

    def action_sort(self) -> None:
        """Choose an order."""
        self._choose("Sort", SORTINGS, self._wish.sorting, "s", "sorting")

    def action_reverse(self) -> None:
        """Turn the order round."""
        self._want(is_reversed=not self._wish.is_reversed)

    def action_filter(self) -> None:
        """Choose what is shown."""
        self._choose("Show only", FILTERS, self._wish.filter, "f", "filter")

    def action_group(self) -> None:
        """Choose what GPUs stand under."""
        self._choose("Group", GROUPINGS, self._wish.grouping, "g", "grouping")

    def _choose(self, title: str, options: Mapping[Any, str], chosen: str, key: str, field: str) -> None:
        def take(name: str | None) -> None:
            if name is not None:
                self._want(**{field: name})

        self.push_screen(Choice(title, options, chosen, key), take)

    def action_node(self) -> None:
        """Show only the node under the cursor, or all again."""
        if self._wish.node_id is not None:
            self._want(node_id=None)
            return
        line = self._board.line
        subject = None if line is None else self._board.listing.subject(line)
        if subject is not None:
            self._want(node_id=subject.id if isinstance(subject, LiveNode) else subject.node.id)

    def action_pause(self) -> None:
        """Let the picture stand still, or go on."""
        self.watched.turn_pause()
        self._draw(is_all=True)

    def action_reconnect(self) -> None:
        """Connect anew, at once."""
        if not self.watched.is_paused:
            self.watched.feed.retry()

    def action_look(self) -> None:
        """Turn dark to light and back."""
        self._palette = PALETTES["light" if self._palette.is_dark else "dark"]
        self.theme = f"gpuherd-{self._palette.name}"
        self._fit()
        self._repaint()

    def action_fold_all(self) -> None:
        """Fold every group."""
        keys = (self._board.listing.fold_key(line) for line in self._board.lines)
        self._folded |= {key for key in keys if key is not None}
        self._draw()

    def action_unfold_all(self) -> None:
        """Unfold every group."""
        self._folded.clear()
        self._draw()

    def action_help(self) -> None:
        """Explain the keys."""
        legend = Text()
        for state in STATES:
            if state != "stale":  # has the sign of offline
                legend.append(sign_of(state), style=self._pen.state(state))
                legend.append(f" {state_word(state)}{chr(10) if state == 'held' else '  '}")
        self.push_screen(Help(legend))

    def action_open_detail(self) -> None:
        """Show more of the line under the cursor."""
        self._board.action_open()

    def action_step_back(self) -> None:
        """Undo one step: details, then the search, then the node, then the filter."""
        if self._is_detailed:
            self._is_detailed = False
            self._fit()
            self._board.focus()
        elif self._search.display or self._wish.search:
            self._search.value = ""
            self._end_search()
            self._want(search="")
        elif self._wish.node_id is not None:
            self._want(node_id=None)
        elif self._wish.filter != "all":
            self._want(filter="all")

    # -- search ------------------------------------------------------------------------------------------------

    def action_search(self) -> None:
        """Search as one types."""
        self._search.display = True
        self.screen.set_focus(self._search, scroll_visible=False)

    def _end_search(self) -> None:
        self._search.display = False
        self.screen.set_focus(self._board, scroll_visible=False)

    @on(Input.Changed, "#search")
    def _search_for(self, event: Input.Changed) -> None:
        self._want(search=event.value)

    @on(Input.Submitted, "#search")
    def _keep_search(self) -> None:
        self._end_search()

    # -- the list ----------------------------------------------------------------------------------------------

    @on(Board.Moved)
    def _follow_cursor(self) -> None:
        if self._is_detailed:
            self._detail.scroll_to(y=0, animate=False)
            self._draw_detail()

    @on(Board.Folding)
    def _fold(self, event: Board.Folding) -> None:
        is_folded = event.key not in self._folded if event.is_folded is None else event.is_folded
        if is_folded:
            self._folded.add(event.key)
        else:
            self._folded.discard(event.key)
        self._draw()

    @on(Board.Opened)
    def _open(self) -> None:
        line = self._board.line
        if isinstance(line, Holding):  # of a user, the GPUs
            self._view = 0
            self._search.value = line.user or "unknown"
            self._want(search=line.user or "unknown")
        elif isinstance(line, Group) and line.node is None:
            self._fold(Board.Folding(line.fold_key, None))
        else:
            self._is_detailed = True
            self._fit()


def _has_terminal() -> bool:
    """Tell whether there is still someone to draw for: not everyone who loses a terminal gets a signal for it."""
    try:
        termios.tcgetattr(sys.__stdin__.fileno())  # type: ignore[union-attr] # it was one when this began
    except (termios.error, ValueError, OSError):
        return False
    return True
