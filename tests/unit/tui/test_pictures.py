"""What `gpuherd top` looks like. After a change that is meant: pytest --snapshot-update, and look at the pictures."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC
from typing import Any

import pytest
from textual.pilot import Pilot

from gpuherd.client.herd_views import Herd
from gpuherd.client.live import Condition
from gpuherd.client.live_picture import Pictures
from gpuherd.tui import TopApp
from support.watched_herd import NOW, ScriptedFeed, StillClock, made_up_herd, story

Compare = Callable[..., bool]


@pytest.fixture(autouse=True)
def usual_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")


def top(herd: Herd | None = None, **options: Any) -> TopApp:
    feed = ScriptedFeed(*story(herd or made_up_herd()), Condition("live"))
    return TopApp(feed, me="user07", monotonic=StillClock(), zone=UTC, **options)


@pytest.mark.parametrize(
    ("keys", "size"),
    [
        pytest.param([], (120, 32), id="herd"),
        pytest.param(["down"], (80, 24), id="usual"),
        pytest.param([], (40, 24), id="narrow"),
        pytest.param(["down", "enter"], (140, 36), id="detail"),
        pytest.param(["enter"], (80, 24), id="detail_alone"),
        pytest.param(["2"], (120, 24), id="processes"),
        pytest.param(["3"], (100, 20), id="users"),
        pytest.param(["4"], (120, 20), id="bookings"),
        pytest.param(["f", "2"], (100, 20), id="filter"),
        pytest.param(["s", "s"], (80, 24), id="choice"),
        pytest.param(["question_mark"], (80, 24), id="help"),
    ],
)
def test_pictures(snap_compare: Compare, keys: list[str], size: tuple[int, int]) -> None:
    assert snap_compare(top(), press=keys, terminal_size=size)


def test_light(snap_compare: Compare) -> None:
    assert snap_compare(top(look="light"), terminal_size=(100, 24))


def test_without_colours(snap_compare: Compare, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert snap_compare(top(), terminal_size=(100, 24))


def test_a_poor_terminal_changes_nothing_of_the_picture(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    usual = taken(top(), terminal_size=(60, 12))
    monkeypatch.setenv("TERM", "linux")
    monkeypatch.setenv("COLUMNS", "33")
    monkeypatch.setenv("COLORTERM", "no")
    assert taken(top(), terminal_size=(60, 12)) == usual


def taken(app: TopApp, **options: Any) -> str:
    from pytest_textual_snapshot import normalize_svg  # type: ignore[import-untyped]
    from textual._doc import take_svg_screenshot

    svg: str = normalize_svg(take_svg_screenshot(app=app, **options))
    assert "h100-01" in svg
    return svg


def test_an_empty_herd(snap_compare: Compare) -> None:
    feed = ScriptedFeed(Pictures().snapshot(Herd(time=NOW), 1.0), Condition("live"))
    app = TopApp(feed, me="user07", monotonic=StillClock(), zone=UTC)
    assert snap_compare(app, terminal_size=(80, 12))


def test_a_hub_that_is_away(snap_compare: Compare) -> None:
    feed, clock = ScriptedFeed(*story(made_up_herd()), Condition("live")), StillClock()
    app = TopApp(feed, me="user07", monotonic=clock, zone=UTC)

    async def go_away(pilot: Pilot[Any]) -> None:
        await pilot.pause()
        clock.now += 75.0
        feed.bring(Condition("away", "https://gpus.example.org cannot be reached: nothing listens there"))
        await pilot.pause()

    assert snap_compare(app, terminal_size=(100, 24), run_before=go_away)


def test_before_the_first_answer(snap_compare: Compare) -> None:
    feed = ScriptedFeed(
        Condition("away", "https://gpus.example.org cannot be reached: the host name is unknown")
    )
    assert snap_compare(TopApp(feed, me="user07", monotonic=StillClock(), zone=UTC), terminal_size=(80, 12))
