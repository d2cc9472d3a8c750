"""Steps, their times, and how they are shown."""

from __future__ import annotations

import pytest

from gpuherd.model.reports import Problem
from gpuherd.wiring.doctor.judging import judge_clock, judge_reading
from gpuherd.wiring.doctor.lists import looked_in, resembling
from gpuherd.wiring.doctor.steps import Journal, Step, broken, is_well, plural
from gpuherd.wiring.doctor.summary import summed_up
from gpuherd.wiring.doctor.wording import age, closing, line, size
from gpuherd.wiring.lookup import FoundList

GOOD = Step(name="resolve", state="ok", seconds=0.012, fact="gpu01 is 10.0.0.1")
BAD = Step(
    name="login", state="failed", seconds=1.5, fact="login refused", remedy="gpu01: login refused; do this"
)
LATE = Step(name="clock", state="failed", seconds=0.0, fact="9 s ahead", remedy="the clock of gpu01 is wrong")
SKIPPED = Step(name="parse", state="skipped")


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_each_step_has_its_own_time() -> None:
    clock = Clock()
    journal = Journal(monotonic=clock)
    clock.now += 2
    journal.start()
    clock.now += 0.5
    journal.ok("resolve", "")
    clock.now += 3
    journal.ok("key", "", 1.0)
    journal.ok("login", "")
    journal.skipped("parse")
    assert [step.seconds for step in journal.steps] == [0.5, 1.0, 2.0, None]


def test_what_a_node_says_cannot_draw_on_the_terminal() -> None:
    told: list[Step] = []
    journal = Journal(told.append)
    journal.failed("parse", "evil \x1b[31m", "evil \x1b]0;title\x07" + "x" * 10_000)
    assert told == journal.steps
    assert "\x1b" not in line(told[0])
    assert told[0].remedy is not None
    assert len(told[0].remedy) <= 512


def test_lines() -> None:
    assert line(GOOD) == "✓ resolve          0.01 s  gpu01 is 10.0.0.1"
    assert line(BAD) == "✗ login            1.50 s  login refused"
    assert line(SKIPPED) == "– parse"
    assert line(BAD, is_coloured=True).startswith("\x1b[31m✗\x1b[0m login")


def test_the_first_broken_step_is_the_sentence() -> None:
    assert closing([GOOD, SKIPPED], "gpu01") == ["gpu01: no problems found."]
    assert closing([GOOD, BAD, LATE], "gpu01") == [
        "gpu01: login refused; do this",
        "Also: the clock of gpu01 is wrong",
    ]
    assert closing([LATE], "gpu01") == ["gpu01: the clock of gpu01 is wrong"]
    assert closing([GOOD]) == ["No problems found."]
    assert closing([BAD]) == ["gpu01: login refused; do this"]
    assert closing([BAD, LATE])[0] == "2 problems found:"
    assert (is_well([GOOD, SKIPPED]), broken([GOOD, BAD])) == (True, [BAD])


def test_a_node_in_one_line() -> None:
    parsed = Step(name="parse", state="ok", seconds=0.5, fact="8 GPUs, no processes")
    assert summed_up("gpu01", [GOOD, parsed]) == Step(
        name="node", state="ok", seconds=0.512, fact="gpu01: 8 GPUs, no processes"
    )
    summary = summed_up("gpu01", [GOOD, LATE, BAD])
    assert (summary.state, summary.fact) == ("failed", "gpu01: clock: 9 s ahead")
    assert summary.remedy == "gpu01: the clock of gpu01 is wrong"


@pytest.mark.parametrize(
    ("skew", "state", "fact"),
    [
        (0.4, "ok", "within 1 s of this machine's"),
        (-4.0, "ok", "4.0 s behind this machine's"),
        (5.1, "failed", "5.1 s ahead of this machine's"),
        (-7300.0, "failed", "2 h behind this machine's"),
    ],
)
def test_clocks(skew: float, state: str, fact: str) -> None:
    journal = Journal()
    judge_clock(journal, skew, "gpu01")
    (step,) = journal.steps
    assert (step.state, step.fact) == (state, fact)
    assert (step.remedy is not None and "NTP" in step.remedy) == (state == "failed")


def test_readings() -> None:
    journal = Journal()
    lost = Problem(code="gpu_lost", message="GPU 3 is lost: reboot")
    judge_reading(journal, "parse", "gpu01", fact="8 GPUs", gpus=8, problems=(), expected_gpus=8)
    judge_reading(journal, "parse", "gpu01", fact="7 GPUs", gpus=7, problems=(lost, lost), expected_gpus=8)
    judge_reading(journal, "parse", "gpu01", fact="7 GPUs", gpus=7, problems=(), expected_gpus=8)
    good, told, missing = journal.steps
    assert good.state == "ok"
    assert told.remedy == "gpu01: GPU 3 is lost: reboot (and 1 more problem)"
    assert missing.remedy is not None
    assert missing.remedy.startswith("gpu01: the list says 8 GPUs, but 7 are visible")


def test_words() -> None:
    assert [plural(count, "process") for count in (0, 1, 2)] == ["no processes", "1 process", "2 processes"]
    assert [age(seconds) for seconds in (0.04, 119, 120, 7200, 172_800)] == [
        "0.0 s",
        "119.0 s",
        "2 min",
        "2 h",
        "2 days",
    ]
    assert [size(count) for count in (5e6, 2.5e9, 3e12)] == ["5 MB", "2.5 GB", "3.0 TB"]


def test_names_that_resemble() -> None:
    assert resembling("gpu2", ["gpu02", "gpu03", "login"]).startswith("; did you mean gpu02")
    assert resembling("zebra", ["gpu02"]) == ""
    lists = [FoundList(name="hosts.txt", way="ssh"), FoundList(name="consul", way="ssh", trouble="down")]
    assert looked_in(lists) == "looked in hosts.txt (no nodes), consul (cannot be loaded)"
    assert looked_in([]) == "there is no [[nodes]] table in the configuration"
