"""One line for a node, out of the steps to it."""

from __future__ import annotations

from collections.abc import Sequence

from gpuherd.wiring.doctor.steps import Step, broken

__all__ = ["summed_up"]


def summed_up(name: str, steps: Sequence[Step]) -> Step:
    """Make one line of a node's steps: the first broken one, else what was read at last."""
    seconds = round(sum(step.seconds or 0.0 for step in steps), 3)
    failed = broken(steps)
    if failed:
        first = failed[0]
        return Step(
            name="node",
            state="failed",
            seconds=seconds,
            fact=f"{name}: {first.name}: {first.fact}",
            remedy=_named(name, first.remedy or first.fact),
        )
    told = [step.fact for step in steps if step.state == "ok" and step.fact]
    return Step(name="node", state="ok", seconds=seconds, fact=f"{name}: {told[-1] if told else 'good'}")


def _named(name: str, sentence: str) -> str:
    """Put the node's name before a sentence that does not begin with it."""
    return sentence if sentence.startswith(name) else f"{name}: {sentence}"
