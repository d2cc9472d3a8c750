"""How things look in a terminal."""

from __future__ import annotations

import io
import re
import time

import pytest

from gpuherd.cli.showing import (
    UNKNOWN,
    Cell,
    Screen,
    ago,
    bytes_text,
    clock,
    fitted,
    page_out,
    percent_text,
    plain_width,
    share_text,
    text_width,
)
from gpuherd.client.states import STATES

GIB = 2**30


class Terminal(io.StringIO):
    """A stream that calls itself a terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def test_every_state_has_a_sign_and_a_colour() -> None:
    for colours in (16, 256):
        painted = {
            Screen(colours=colours).paint("x", state) for state in STATES if state not in ("stale", "offline")
        }
        assert len(painted) == len(STATES) - 2
    assert Screen().sign("held") == "▨"
    assert Screen(is_unicode=False).sign("held") == "~"


@pytest.mark.parametrize(
    ("environment", "colours"),
    [
        ({"TERM": "xterm-256color"}, 256),
        ({"TERM": "xterm"}, 16),
        ({"TERM": "xterm", "COLORTERM": "truecolor"}, 256),
        ({"TERM": "dumb", "COLORTERM": "truecolor"}, 0),
        ({}, 0),
        ({"TERM": "xterm-256color", "NO_COLOR": "1"}, 0),
        ({"TERM": "xterm-256color", "NO_COLOR": ""}, 256),
    ],
)
def test_colours_are_for_terminals_that_want_them(environment: dict[str, str], colours: int) -> None:
    assert Screen.of(Terminal(), environment).colours == colours
    assert Screen.of(io.StringIO(), environment) == Screen(), "a pipe has no colours and no end"


def test_a_terminal_has_a_width_even_if_it_does_not_tell() -> None:
    assert Screen.of(Terminal(), {"TERM": "xterm"})[:2] == (80, 24)
    assert Screen.of(Terminal(), {"TERM": "xterm", "COLUMNS": "132", "LINES": "50"})[:2] == (132, 50)
    assert Screen.of(Terminal(), {"TERM": "xterm", "COLUMNS": "0", "LINES": "many"})[:2] == (80, 24)


def test_paint_leaves_text_alone_without_colours() -> None:
    assert Screen().paint("free", "free") == "free"
    assert Screen(colours=16).paint("free", None) == "free"
    assert Screen(colours=16).paint("free", "no such state") == "free"
    assert Screen(colours=16).paint("free", "free") == "\x1b[32mfree\x1b[0m"


@pytest.mark.parametrize(
    ("ratio", "drawn"),
    [
        (None, "    "),
        (0.0, "┄┄┄┄"),
        (0.001, "╸┄┄┄"),
        (0.5, "━━┄┄"),
        (0.6, "━━╸┄"),
        (1.0, "━━━━"),
        (7.0, "━━━━"),
        (-1.0, "┄┄┄┄"),
    ],
)
def test_bars(ratio: float | None, drawn: str) -> None:
    assert Screen().bar(ratio, 4) == drawn
    plain = Screen(is_unicode=False).bar(ratio, 4)
    assert (len(plain), plain.isascii()) == (4, True)


def test_what_is_unknown_is_no_zero() -> None:
    assert {bytes_text(None), percent_text(None), ago(None), share_text(None, None)} == {UNKNOWN}
    assert share_text(None, 80 * GIB) == "-/80G"
    assert share_text(0, 80 * GIB) == "0.0/80G"
    assert share_text(5 * GIB, None) == "5G"
    assert Screen().bar_cell(None, "free").text == ""


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0B"),
        (1023, "1023B"),
        (1536, "1.5K"),
        (38 * GIB, "38G"),
        (int(38.25 * GIB), "38.2G"),
        (2**42, "4T"),
    ],
)
def test_bytes(count: int, text: str) -> None:
    assert bytes_text(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "0 s"),
        (0.4, "0 s"),
        (59.9, "59 s"),
        (60, "1 min"),
        (3599, "59 min"),
        (7200, "2 h"),
        (1e6, "11 d"),
    ],
)
def test_spans_have_one_unit(seconds: float, text: str) -> None:
    assert ago(seconds) == text


def test_planned_times_are_as_precise_as_they_are_near(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    try:
        noon = 1_790_000_000 // 86_400 * 86_400 + 43_200
        assert clock(noon + 3600, noon) == "13:00"
        assert re.fullmatch(r"\w{3} 13:00", clock(noon + 25 * 3600, noon))
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", clock(noon + 30 * 86_400, noon))
        assert clock(1e300, noon) == "never"
    finally:
        monkeypatch.undo()
        time.tzset()


def test_wide_letters_take_two_cells_and_accents_none() -> None:
    assert [text_width(text) for text in ("abc", "日本", "e\u0301", "a\ufe0f")] == [3, 4, 1, 1]
    assert fitted("日本語", 5) == "日本…"
    assert fitted("日本語", 4) == "日… "
    assert fitted("ab", 4, is_right=True) == "  ab"
    assert fitted("abc", 0) == ""
    assert text_width(fitted("\x1b[31m\u202eevil\n", 20)) == 20
    assert "\x1b" not in fitted("\x1b[31mevil", 20)


ROWS = [
    [
        Cell("gpu07/0"),
        Cell("■ busy", "busy"),
        Cell("74%", is_right=True),
        Cell("38.2/80G"),
        Cell("ada " * 20),
    ],
    [Cell("gpu07/10"), Cell("○ free", "free"), Cell("-", is_right=True), Cell("-/80G"), Cell("")],
]


@pytest.mark.parametrize("width", [1, 5, 10, 17, 18, 30, 40, 50, 80, 200])
@pytest.mark.parametrize("colours", [0, 256])
def test_no_line_is_longer_than_the_screen(width: int, colours: int) -> None:
    lines = Screen(width=width, colours=colours).lay_out(ROWS, indent=min(2, width - 1))
    assert len(lines) == 2
    assert all(plain_width(line) <= width for line in lines), lines


def test_columns_go_by_how_little_they_matter() -> None:
    def at(width: int, *drop: int) -> str:
        return Screen(width=width).lay_out(ROWS, drop=drop)[0]

    assert Screen().lay_out(ROWS)[0] == "gpu07/0   ■ busy  74%  38.2/80G  " + ("ada " * 20).rstrip()
    assert at(60) == "gpu07/0   ■ busy  74%  38.2/80G  ada ada ada ada ada ada ad…"
    assert at(40) == "gpu07/0   ■ busy  74%  38.2/80G", "the last has no room to be read"
    assert at(40, 3) == "gpu07/0   ■ busy  74%  ada ada ada ada …", "memory matters less here"
    assert at(16) == "gpu07/0   ■ busy"
    assert at(12) == "gpu07/0   ■…"
    assert Screen(width=40).lay_out([]) == []


def test_only_letters_are_painted_not_the_space_around_them() -> None:
    line = Screen(colours=16).lay_out(
        [[Cell("a", "free"), Cell("b", marks=["busy"])], [Cell("aaa"), Cell()]]
    )[0]
    assert line == "\x1b[32ma\x1b[0m    \x1b[36mb\x1b[0m"
    bar = Screen(colours=16).lay_out([[Screen(colours=16).bar_cell(0.5, "held", 4)]])[0]
    assert bar == "\x1b[33m━━\x1b[0m\x1b[90m┄┄\x1b[0m"


def test_letters_that_an_output_lacks_become_question_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(raw, encoding="ascii"))
    page_out(["○ free", "ok"])
    assert raw.getvalue() == b"? free\nok\n"
