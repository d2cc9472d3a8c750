"""Keys, mouse and news of `gpuherd top`: what is shown, and what becomes of it."""

from __future__ import annotations

import asyncio
import io
import re
import time
import unicodedata
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from datetime import UTC
from typing import Any

import msgspec
import pytest
from msgspec import structs
from textual.pilot import Pilot

from gpuherd.client.errors import HubRefused
from gpuherd.client.herd_views import Herd, Notice, Problem
from gpuherd.client.live import Condition
from gpuherd.client.live_messages import GpuColumns, GpuStateColumns, HerdChange, OwnProcesses
from gpuherd.client.live_picture import Pictures
from gpuherd.client.views import Account, HubError, Session
from gpuherd.tui import TopApp, looks_light
from gpuherd.tui.board import Board
from gpuherd.tui.cells import UNKNOWN
from gpuherd.tui.strips import Pane, Strips
from support.running import PATIENCE_SECONDS
from support.watched_herd import HOSTILE, ScriptedFeed, StillClock, device, made_up_herd, node, process, story

Scenario = Callable[["Stage"], Coroutine[Any, Any, None]]


class Stage:
    """The app on a terminal in memory."""

    def __init__(self, app: TopApp, feed: ScriptedFeed, clock: StillClock, pilot: Pilot[Any]) -> None:
        self.app, self.feed, self.clock, self.pilot = app, feed, clock, pilot

    def screen(self) -> list[str]:
        """What stands on the terminal, line by line."""
        app = self.app
        update = app.screen._compositor.render_full_update(simplify=False)
        out = io.StringIO()
        from rich.console import Console

        Console(file=out, width=app.size.width, color_system=None, legacy_windows=False, _environ={}).print(
            update
        )
        return [line.rstrip() for line in out.getvalue().split("\n")]

    def shows(self, text: str) -> bool:
        return any(text in line for line in self.screen())

    async def until(self, text: str) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not self.shows(text):
            assert time.monotonic() < deadline, self.screen()
            await self.pilot.pause(0.02)

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.pilot.pause()

    async def bring(self, *news: Any) -> None:
        self.feed.bring(*news)
        self.clock.now += 1.0
        await self.pilot.pause()
        self.app._draw()
        await self.pilot.pause()

    @property
    def board(self) -> Board:
        return self.app.screen_stack[0].query_one(Board)

    def places(self) -> list[str]:
        """The GPUs that are listed."""
        return [line.place for line in self.board.lines if hasattr(line, "place")]

    @property
    def cursor(self) -> str:
        line = self.board.line
        return str(getattr(line, "place", None) or getattr(line, "name", ""))


@asynccontextmanager
async def stage(*news: Any, size: tuple[int, int] = (120, 40)) -> AsyncIterator[Stage]:
    feed, clock = ScriptedFeed(*(news or [*story(made_up_herd(), ticks=2), Condition("live")])), StillClock()
    app = TopApp(feed, me="user07", monotonic=clock, zone=UTC)
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        yield Stage(app, feed, clock, pilot)


def play(scenario: Scenario, *news: Any, **options: Any) -> None:
    async def run() -> None:
        async with stage(*news, **options) as at:
            await scenario(at)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("cpu_ratio", "load", "shown"),
    [(None, 192.0, "150%"), (None, 32.0, "25%"), (0.5, 192.0, "50%"), (None, None, UNKNOWN)],
)
def test_the_cpu_bar_is_load_by_cores_where_nothing_measures_the_cpus(
    cpu_ratio: float | None, load: float | None, shown: str
) -> None:
    one = node("gpu01", device("gpu01", 0, "free"))
    assert one.host is not None
    assert one.host_sample is not None
    assert one.host.cpu_count == 128
    sample = structs.replace(one.host_sample, cpu_ratio=cpu_ratio, load_1m=load)
    herd = structs.replace(made_up_herd(), nodes=(structs.replace(one, host_sample=sample),))

    async def scenario(at: Stage) -> None:
        assert at.shows(f"cpu {shown:>4} ")
        await at.press("home", "enter")
        assert any(re.search(rf"cpu\s+(\S+\s*)?{shown}$", line) for line in at.screen()), at.screen()

    play(scenario, *story(herd, ticks=1), Condition("live"))


def test_moving_folding_and_details() -> None:
    async def scenario(at: Stage) -> None:
        await at.press("j", "down", "k")
        assert at.cursor == "h100-01/0"
        await at.press("left")
        assert at.cursor == "h100-01"
        assert "h100-01/0" not in at.places()
        await at.press("space")
        assert "h100-01/0" in at.places()
        await at.press("minus")
        assert at.places() == []
        await at.press("plus", "end")
        assert at.places()[-1].startswith("zz")
        await at.press("home", "down", "enter")
        assert at.shows("633 W of 700 W")
        await at.press("down")
        assert at.shows("GPU-h100-01-1"), "details follow the cursor"
        await at.press("escape")
        assert not at.shows("GPU-h100-01-1")

    play(scenario)


def test_the_cursor_stays_on_its_gpu_when_others_move() -> None:
    async def scenario(at: Stage) -> None:
        await at.press("g", "4", "s", "2", "home")
        assert at.places()[:2] == ["h100-01/0", "h100-01/1"]
        await at.press("down")
        assert at.cursor == "h100-01/1"
        herd = at.app.herd
        rows = [gpu.row for gpu in herd.gpus()]
        loads: list[float | None] = [0.01 * place for place in range(len(rows))]
        assert herd.tick is not None
        await at.bring(
            HerdChange(
                tick=herd.tick + 1,
                after_tick=herd.tick,
                time=herd.time + 1,
                totals=herd.totals,
                devices=GpuColumns(row=rows, utilization_gpu=loads),
            )
        )
        assert at.places()[0].startswith("zz"), "the order is another"
        assert at.cursor == "h100-01/1"
        await at.press("S")
        assert at.places()[-1].startswith("zz")
        assert at.cursor == "h100-01/1"

    play(scenario)


@pytest.mark.parametrize(
    ("keys", "places"),
    [
        (("f", "2"), ["h100-01/3", "a100-01/0.2", "l40s-01/0"]),
        (("f", "f", "f", "enter"), ["h100-01/2"]),
        (("f", "4"), ["l40s-01/1", "v100-01/0", "v100-01/1"]),
        (("f", "5"), ["h100-01/0", "h100-01/1"]),
        (("slash", *"l40s fr", "enter"), ["l40s-01/0"]),
        (("slash", *"USER05"), ["a100-01/0.1"]),
        (("down", "n"), ["h100-01/0", "h100-01/1", "h100-01/2", "h100-01/3"]),
        (("g", "4", "s", "6", "home"), None),
    ],
)
def test_what_is_left_out(keys: tuple[str, ...], places: list[str] | None) -> None:
    async def scenario(at: Stage) -> None:
        everything = at.places()
        await at.press(*keys)
        if places is None:
            assert at.places()[0] == "h100-01/2", "longest first"
            return
        assert at.places() == places
        await at.press("escape", "escape")
        assert at.places() == everything

    play(scenario)


def herd_with_bare_nodes() -> Herd:
    """Nodes on which no GPU can be seen: one between others whose driver hangs, one without a driver, one silent."""
    herd = made_up_herd()
    hung = Problem(code="driver_hung", message="the driver does not respond: reboot the node", is_fault=True)
    first, *others = herd.nodes
    silent = node("attic-01", state="offline", reason="no report for 2 d")
    bare = (node("rtx-04", problems=(hung,)), node("storage-01"))
    return structs.replace(herd, nodes=(silent, first, *bare, *others))


@pytest.mark.parametrize(
    ("keys", "names"),
    [
        (("slash", *"RTX-0"), ["rtx-04"]),
        (("slash", *"fault", "enter"), ["rtx-04", "l40s-01"]),
        (("slash", *"-01 off"), ["attic-01", "v100-01"]),
        (("slash", *"rtx-04 free"), []),
        (("g", "2", "slash", *"storage"), ["storage-01"]),
        (("g", "4", "slash", *"storage"), ["storage-01"]),
        (("f", "4"), ["attic-01", "rtx-04", "l40s-01", "v100-01"]),
        (("f", "2"), ["h100-01", "a100-01", "l40s-01"]),
        (("slash", *"storage", "enter", "n", "slash", "ctrl+u"), ["storage-01"]),
        (
            ("s", "2", "slash", *"-01"),
            ["h100-01", "l40s-01", "a100-01", "v100-01", "attic-01", "storage-01"],
        ),
        (
            ("S", "slash", *"-01"),
            ["v100-01", "l40s-01", "a100-01", "storage-01", "h100-01", "attic-01"],
        ),
    ],
)
def test_nodes_on_which_no_gpu_can_be_seen_are_found(keys: tuple[str, ...], names: list[str]) -> None:
    async def scenario(at: Stage) -> None:
        await at.press(*keys)
        assert [line.name for line in at.board.lines if hasattr(line, "gpus")] == names
        assert at.shows("nothing matches") == (not names)

    play(scenario, *story(herd_with_bare_nodes(), ticks=1), Condition("live"))


def test_a_missing_gpu_and_nodes_in_fault_are_told() -> None:
    told = "1 GPU missing since 12:03: GPU 3, A100, serial 132, slot 0000:3b:00.0"
    herd = herd_with_bare_nodes()
    silent, first, *others = herd.nodes
    missing = structs.replace(first, problems=(Problem(code="gpus_missing", message=told),))

    async def scenario(at: Stage) -> None:
        assert at.shows("1 node in fault")
        await at.press("slash", *first.name, "enter")
        assert at.shows("✕ 1 problem: 1 GPU missing since 12:03: GPU 3")
        await at.press("enter")
        assert told in " ".join(line.partition("▏")[2].strip() for line in at.screen())

    play(
        scenario,
        *story(structs.replace(herd, nodes=(silent, missing, *others)), ticks=1),
        Condition("live"),
        size=(160, 40),
    )


def test_a_gpu_in_fault_says_why_in_its_row() -> None:
    herd = made_up_herd()
    broken = device("h100-09", 0, "fault")
    broken = structs.replace(
        broken, availability=structs.replace(broken.availability, reason="power brake: check")
    )

    async def scenario(at: Stage) -> None:
        await at.press("slash", *"h100-09", "enter")
        assert any("✕ fault" in line and "power brake: check" in line for line in at.screen())

    play(
        scenario,
        *story(structs.replace(herd, nodes=(*herd.nodes, node("h100-09", broken))), ticks=1),
        Condition("live"),
        size=(160, 40),
    )


def test_a_node_that_was_searched_for_says_what_is_wrong() -> None:
    async def scenario(at: Stage) -> None:
        await at.press("slash", *"rtx-04", "enter")
        assert at.shows("✕ 1 problem")
        await at.press("enter")
        assert at.shows("the driver does not respond")

    play(scenario, *story(herd_with_bare_nodes(), ticks=1), Condition("live"))


@pytest.mark.parametrize("state", ["stale", "offline"])
def test_users_of_silent_nodes_are_not_counted_and_that_is_said(state: str) -> None:
    herd = made_up_herd()
    silent = node(
        "h100-09",
        device("h100-09", 0, state, process(9100, "user07", 40)),
        device("h100-09", 1, state, process(9101, "user09", 40)),
        state=state,
    )

    async def scenario(at: Stage) -> None:
        await at.press("3")
        held = {line.user: len(line.gpus) for line in at.board.lines}
        assert held["user07"] == 2
        assert "user09" not in held
        assert at.shows("4 GPUs on offline nodes not shown"), "those of v100-01, too"
        await at.press("slash", *"h100-09")
        assert at.shows("nobody holds a GPU here")
        await at.press("escape", "1")
        assert not at.shows("not shown")

    news = story(structs.replace(herd, nodes=(*herd.nodes, silent)), ticks=1)
    play(scenario, *news, Condition("live"))


def test_a_screen_of_someone_holds_no_gpu() -> None:
    desktop = node(
        "desk",
        device("desk", 0, "free", process(9200, "user08", 1, kind="graphics")),
        device("desk", 1, "busy", process(9201, "user09", 1), process(9202, "user08", 1, kind="graphics")),
    )

    async def scenario(at: Stage) -> None:
        await at.press("3")
        assert [(line.user, len(line.gpus), len(line.processes)) for line in at.board.lines] == [
            ("user09", 1, 1)
        ]
        assert not at.shows("not shown")

    herd = structs.replace(made_up_herd(), nodes=(desktop,))
    play(scenario, *story(herd, ticks=1), Condition("live"))


@pytest.mark.parametrize("size", [(60, 20), (60, 18), (60, 12), (120, 40)])
def test_all_of_the_help_can_be_read(size: tuple[int, int]) -> None:
    async def scenario(at: Stage) -> None:
        await at.press("question_mark")
        is_whole = size[1] >= 20
        assert at.shows("↑ ↓ more") == (not is_whole)
        assert at.shows("◌ offline") == is_whole
        await at.press(*["j"] * 30)
        assert at.shows("◌ offline")
        assert at.shows("? unknown"), "to the end"
        assert at.shows("Enter") == is_whole
        await at.press("home")
        assert at.shows("Enter")
        await at.press("end", "k", "question_mark")
        assert at.shows("1 Herd")

    play(scenario, size=size)


def test_an_ellipsis_stands_only_where_something_is_left_out() -> None:
    async def scenario(at: Stage) -> None:
        everything = "FREE NOW   3 RTX 4090   2 H100 80GB   1 GB10"
        for width in range(120, 20, -1):
            await at.pilot.resize_terminal(width, 30)
            await at.pilot.pause()
            said = at.screen()[1].strip()
            if width >= len(everything) + 2:
                assert said.startswith(everything)
                assert "…" not in said
            else:
                assert said.endswith("…"), width
                assert said[:-1].rstrip() in everything
                assert width < len(everything) + 2
            most = "most together: 3 RTX 4090 on b"
            assert (most in said) == (width >= len(everything) + 5 + len(most)), width

    nodes = (
        node("a", *(device("a", index, "free") for index in range(2))),
        node("b", *(device("b", index, "free", name="RTX 4090") for index in range(3))),
        node("c", device("c", 0, "free", name="GB10")),
    )
    play(scenario, *story(structs.replace(made_up_herd(), nodes=nodes), ticks=1), Condition("live"))


def test_groups() -> None:
    async def scenario(at: Stage) -> None:
        await at.press("g", "2")
        assert at.shows("▾ H100 80GB")
        assert at.shows("8 GPUs")
        await at.press("g", "3")
        names = [line.name for line in at.board.lines if hasattr(line, "gpus")]
        assert names[:3] == ["user01", "user02", "user04"]
        assert names[-2:] == ["unknown owner", "nobody"]

    play(scenario)


def test_processes_users_and_bookings() -> None:
    async def scenario(at: Stage) -> None:
        await at.press("2", "s", "3")
        assert at.screen()[5].split()[1:4] == ["h100-01/0", "4001", "user07"], "most memory first"
        await at.press("s", "1", "slash", *"8001", "enter")
        assert len(at.board.lines) == 1
        await at.press("escape", "3")
        assert at.screen()[5].split()[1:3] == ["user04", "4"]
        await at.press("enter")
        assert [place[:7] for place in at.places()] == ["h100-02"] * 4, "a user's GPUs"
        await at.press("escape", "4")
        assert at.shows("ends in 5 h")
        assert at.shows("camera-")
        await at.press("shift+tab")
        assert at.shows("held idle")

    play(scenario)


def test_the_mouse() -> None:
    async def scenario(at: Stage) -> None:
        lines = at.screen()
        row = next(place for place, line in enumerate(lines) if "▾ h100-02" in line)
        await at.pilot.click(offset=(2, row))
        assert at.places()[4:6] == ["a100-01/0", "a100-01/0.1"], "a click on the triangle folds"
        await at.pilot.click(offset=(30, 6))
        assert at.cursor == "h100-01/0"
        await at.pilot.click(offset=(30, 6))
        await at.pilot.pause()
        assert at.shows("633 W of 700 W"), "the second click shows more"
        await at.press("escape")
        await at.pilot.click(offset=(lines[3].index("Users") + 1, 3))
        await at.pilot.pause()
        assert at.shows("of the herd")
        row = next(place for place, line in enumerate(lines) if "? help" in line)
        await at.pilot.click(offset=(lines[row].index("help"), row))
        await at.pilot.pause()
        assert at.shows("search as you type")

    play(scenario)


def test_news_are_drawn_where_they_belong_and_no_other_line_is_sent_again() -> None:
    async def scenario(at: Stage) -> None:
        herd, board = at.app.herd, at.board
        sent: list[Any] = []
        original = board.refresh

        def refresh(*regions: Any, **options: Any) -> Any:
            sent.extend(regions or ["all"])
            return original(*regions, **options)

        board.refresh = refresh  # type: ignore[method-assign]
        assert herd.tick is not None
        row = next(gpu.row for gpu in herd.gpus() if gpu.place == "h100-01/3")
        await at.bring(
            HerdChange(
                tick=herd.tick + 1,
                after_tick=herd.tick,
                time=herd.time + 1,
                totals=herd.totals,
                devices=GpuColumns(row=[row], utilization_gpu=[0.42]),
            )
        )
        assert " 42% " in at.screen()[9]
        assert [region.y for region in sent] == [4]

    play(scenario)


def test_a_hub_away_a_pause_and_the_way_back() -> None:
    async def scenario(at: Stage) -> None:
        await at.bring(Condition("away", "it is gone"))
        assert at.shows("no data for 1 s")
        assert at.shows("it is gone; retrying, press r to retry now")
        assert at.shows("user07"), "the last picture stays"
        assert at.app._pen.is_old
        await at.press("r")
        assert at.feed.asked == ["retry"]
        await at.bring(*story(made_up_herd(), ticks=1), Condition("live"))
        assert at.shows("● live")
        assert not at.app._pen.is_old
        at.clock.now += 10
        at.app._look_at_clock()
        assert at.app._pen.is_old, "also if nobody says that the line is dead"
        await at.press("p")
        assert at.feed.asked[-1] == "pause"
        assert at.shows("paused")
        before = at.app.herd.tick
        await at.bring(HerdChange(tick=99, time=5.0))
        assert at.app.herd.tick == before
        await at.press("p")
        assert at.feed.asked[-1] == "resume"
        await at.bring(
            *story(made_up_herd(), ticks=1), Condition("polling", "too many live streams are open")
        )
        assert at.shows("no live stream: too many live streams are open")
        assert at.shows("polled every 5 s")

    play(scenario)


def test_a_gap_in_the_stream_asks_for_a_new_one() -> None:
    async def scenario(at: Stage) -> None:
        await at.bring(HerdChange(tick=99, after_tick=97, time=5.0))
        assert at.feed.asked == ["reject: the hub's live stream skipped an update"]
        unknown = GpuStateColumns(row=[9999], state=["free"], reason=[""])
        await at.bring(HerdChange(tick=1, time=5.0, device_states=unknown))
        assert at.feed.asked[1:] == ["reject: the hub's live stream has data of unknown GPUs"]

    play(scenario)


def test_whose_processes_are_mine_says_the_hub() -> None:
    async def scenario(at: Stage) -> None:
        await at.bring(Session(account=Account(name="user04", display_name="User Four")))
        await at.press("f", "5")
        mine = [f"h100-02/{index}" for index in range(4)] + ["a100-01/3", "l40s-01/0"]
        assert at.places() == mine, "with what is booked"
        await at.bring(
            OwnProcesses(node_id=["l40s-01"], pid=[8001], started_at=[_started(8001)], command=["mine.py"])
        )
        assert at.places()[-1] == "l40s-01/2"

    play(scenario)


def _started(pid: int) -> float | None:
    for each in made_up_herd().nodes:
        for gpu in each.devices:
            for using in gpu.processes:
                if using.pid == pid:
                    return using.started_at
    raise AssertionError(pid)


def test_it_ends_with_what_the_hub_refuses_and_with_codes_of_its_own() -> None:
    from gpuherd.client.live import Shut

    error = HubRefused(401, HubError(code="login_needed", message="log in first"))

    async def refused(at: Stage) -> None:
        await at.bring(Shut(error))
        assert at.app.return_value is error

    async def interrupted(at: Stage) -> None:
        await at.press("ctrl+c")
        assert at.app.return_code == 130

    async def quit_(at: Stage) -> None:
        await at.press("q")
        assert at.app.return_code == 0

    play(refused)
    play(interrupted)
    play(quit_)


def test_a_hub_that_shows_only_totals() -> None:
    async def scenario(at: Stage) -> None:
        assert at.shows("○ 2 + 1 slice free")
        assert at.shows("this hub shows only totals")

    counts = structs.replace(Pictures().snapshot(made_up_herd(), 1.0), nodes=[])
    empty = HerdChange(tick=1, time=1.0, totals=counts.totals)
    play(scenario, empty, Condition("live"))


@pytest.mark.parametrize("size", [(1, 1), (40, 10), (200, 60)])
def test_no_size_is_too_small_or_too_large(size: tuple[int, int]) -> None:
    async def scenario(at: Stage) -> None:
        for keys in (
            ("enter",),
            ("escape", "2"),
            ("3",),
            ("4",),
            ("question_mark",),
            ("escape", "1", "f"),
            ("escape",),
        ):
            await at.press(*keys)
        await at.pilot.resize_terminal(80, 24)
        await at.until("h100-01")

    play(scenario, size=size)


def test_ten_thousand_lines_are_not_drawn_one_by_one() -> None:
    nodes = tuple(
        node(f"n{at:04}", *(device(f"n{at:04}", i, "free") for i in range(8))) for at in range(1200)
    )

    async def scenario(at: Stage) -> None:
        drawn = 0
        original = at.board.listing.draw

        def draw(*arguments: Any) -> Any:
            nonlocal drawn
            drawn += 1
            return original(*arguments)

        at.board.listing.draw = draw  # type: ignore[assignment, method-assign]
        await at.press("end")
        assert at.cursor == "n1199/7"
        await at.press("pageup", "home")
        assert at.shows("n0000")
        assert drawn <= 4 * 40

    play(scenario, Pictures().snapshot(structs.replace(made_up_herd(), nodes=nodes), 1.0), Condition("live"))


@pytest.mark.parametrize(
    ("told", "is_light"), [("0;15", True), ("0;default;7", True), ("15;0", False), ("", False)]
)
def test_what_the_terminal_says_of_its_colours(told: str, is_light: bool) -> None:
    assert looks_light({"COLORFGBG": told}) is is_light
    assert not looks_light({})


@pytest.mark.promise("text-is-inert")
def test_whatever_is_told_nothing_acts_on_the_terminal() -> None:
    """Every text that a hub can tell is hostile, in every list and in the details."""
    told = msgspec.json.decode(msgspec.json.encode(made_up_herd()))
    herd = msgspec.convert(_poisoned(told), Herd)

    async def scenario(at: Stage) -> None:
        views: tuple[tuple[str, ...], ...] = (
            ("down", "enter"), ("escape", "home", "enter"), ("escape", "g", "2"), ("g", "3"), ("g", "1", "f", "4"),
            ("escape", "2"), ("3",), ("4",), ("1", "n"), ("question_mark",),
        )  # fmt: skip
        for keys in views:
            await at.press(*keys)
            drawn = [segment.text for strip in _strips(at) for segment in strip]
            wrong = [
                text for text in drawn if any(unicodedata.category(letter) in ("Cc", "Cf") for letter in text)
            ]
            assert wrong == [], keys
        assert any("[red]" in text for text in drawn) or at.shows("[red]")

    news = Pictures().snapshot(herd, 1.0)
    notices = (Notice(code=HOSTILE, message=HOSTILE),)
    play(scenario, structs.replace(news, notices=notices), Condition("polling", HOSTILE), size=(150, 40))


def _poisoned(told: Any, key: str = "") -> Any:
    """Put something hostile behind every text; what things are known by stays apart."""
    if isinstance(told, dict):
        return {name: _poisoned(value, name) for name, value in told.items()}
    if isinstance(told, list):
        return [_poisoned(value, key) for value in told]
    is_known = key in ("phase", "kind") or not isinstance(told, str)
    return told if is_known else f"{told}{HOSTILE}"


def _strips(at: Stage) -> list[Any]:
    widgets = [at.board, *at.app.screen_stack[0].query(Pane), *at.app.screen_stack[0].query(Strips)]
    return [widget.render_line(y) for widget in widgets for y in range(widget.size.height)]
