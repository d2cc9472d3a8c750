"""What anyone can cause is logged a few times a minute, and the rest is counted."""

from __future__ import annotations

import logging
from functools import partial

import pytest

from gpuherd.api.sparing_log import SparingLog

log = logging.getLogger("gpuherd.test")


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]


def test_warnings_of_one_kind_are_logged_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    times = iter((0.0, 1.0, 2.0, 59.0, 61.0))
    sparing = SparingLog(log, monotonic=times.__next__)
    for kind in ("disk", "disk", "network", "disk", "disk"):
        sparing.warning(kind, f"no {kind}")
    assert told(caplog) == ["no disk", "no network", "no disk (2 similar messages were not logged)"]


def test_several_lines_a_minute_can_be_allowed(caplog: pytest.LogCaptureFixture) -> None:
    times = iter((0.0, 1.0, 2.0))
    sparing = SparingLog(log, limit=2, monotonic=times.__next__)
    for _ in range(3):
        sparing.warning("x", "x")
    assert len(told(caplog)) == 2


def fail(text: str) -> None:
    raise ValueError(text)


def fail_otherwise() -> None:
    raise IndexError("elsewhere")


def test_errors_from_one_line_of_code_have_one_traceback(caplog: pytest.LogCaptureFixture) -> None:
    sparing = SparingLog(log, monotonic=lambda: 0.0)
    for number in range(3):
        for work in (partial(fail, f"number {number}"), fail_otherwise):
            try:
                work()
            except (ValueError, IndexError) as error:
                sparing.unexpected("it broke", error)
    assert told(caplog) == ["it broke", "it broke"]
    assert [str(record.exc_info[1]) for record in caplog.records if record.exc_info] == [
        "number 0",
        "elsewhere",
    ]
