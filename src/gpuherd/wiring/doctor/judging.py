"""What is good enough: readings, clocks. Pure, but for writing the verdict into the journal."""

from __future__ import annotations

from collections.abc import Sequence

from gpuherd.model.reports import Problem
from gpuherd.wiring.doctor.steps import Journal, plural
from gpuherd.wiring.doctor.wording import age

__all__ = ["judge_clock", "judge_reading"]

LARGEST_SKEW_SECONDS = 5.0


def judge_reading(
    journal: Journal,
    step: str,
    name: str,
    *,
    fact: str,
    gpus: int,
    problems: Sequence[Problem],
    expected_gpus: int | None = None,
) -> None:
    """Judge a report: a problem that the node tells is one, and so are fewer GPUs than the list promises."""
    sentences = [problem.message for problem in problems]
    if not sentences and expected_gpus is not None and gpus < expected_gpus:
        promised = plural(expected_gpus, "GPU")
        sentences = [
            f"the list says {promised}, but {gpus} are visible: look for missing ones (`nvidia-smi`, `dmesg`)"
        ]
    if not sentences:
        journal.ok(step, fact)
        return
    more = f" (and {plural(len(sentences) - 1, 'more problem')})" if len(sentences) > 1 else ""
    told = f"{fact}; {plural(len(sentences), 'problem')}"
    journal.failed(step, told, f"{name}: {sentences[0]}{more}")


def judge_clock(journal: Journal, skew_seconds: float, name: str, other: str = "this machine's") -> None:
    """Judge how far a clock is ahead of another."""
    where = "ahead of" if skew_seconds > 0 else "behind"
    off = f"{age(abs(skew_seconds))} {where} {other}"
    if abs(skew_seconds) > LARGEST_SKEW_SECONDS:
        journal.failed(
            "clock",
            off,
            f"the clock of {name} is {off}: let both follow NTP (`timedatectl set-ntp true`)",
        )
    else:
        journal.ok("clock", f"within 1 s of {other}" if abs(skew_seconds) < 1 else off)
