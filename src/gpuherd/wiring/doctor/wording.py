"""How findings are shown to a person: a line for each step, and at the end what to do."""

from __future__ import annotations

from collections.abc import Sequence

from gpuherd.wiring.doctor.steps import State, Step, broken

__all__ = ["age", "closing", "line", "size"]

_MARKS: dict[State, str] = {"ok": "✓", "failed": "✗", "skipped": "–"}
_ASCII_MARKS: dict[State, str] = {"ok": "+", "failed": "X", "skipped": "-"}
_COLOURS: dict[State, str] = {"ok": "\x1b[32m", "failed": "\x1b[31m", "skipped": "\x1b[2m"}
_PLAIN = "\x1b[0m"
_NAME_WIDTH = 13


def line(step: Step, *, is_coloured: bool = False, is_ascii: bool = False) -> str:
    """Show a step; the mark says how it is, never the colour alone. ``is_ascii``: for terminals that have no ✓."""
    mark = (_ASCII_MARKS if is_ascii else _MARKS)[step.state]
    if is_coloured:
        mark = f"{_COLOURS[step.state]}{mark}{_PLAIN}"
    seconds = f"{step.seconds:7.2f} s" if step.seconds is not None else " " * 9
    return f"{mark} {step.name:<{_NAME_WIDTH}} {seconds}  {step.fact}".rstrip()


def closing(steps: Sequence[Step], subject: str | None = None) -> list[str]:
    """Sum up: all is well, or the one sentence of the first broken step, and after it what else is wrong.

    ``subject`` is the node; without one everything was looked at, and nothing comes first.
    """
    sentences = [step.remedy or step.fact for step in broken(steps)]
    if subject is None:
        if len(sentences) < 2:
            return sentences or ["No problems found."]
        return [f"{len(sentences)} problems found:", *(f"- {sentence}" for sentence in sentences)]
    if not sentences:
        return [f"{subject}: no problems found."]
    first, *others = sentences
    told = first if first.startswith(subject) else f"{subject}: {first}"
    return [told, *(f"Also: {other}" for other in others)]


def age(seconds: float) -> str:
    """Write a length of time as people say it."""
    for unit, length in (("days", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{max(0.0, seconds):.1f} s"


def size(count_bytes: float) -> str:
    """Write an amount of memory or disk space."""
    for unit, length in (("TB", 1e12), ("GB", 1e9)):
        if count_bytes >= length:
            return f"{count_bytes / length:.1f} {unit}"
    return f"{count_bytes / 1e6:.0f} MB"
