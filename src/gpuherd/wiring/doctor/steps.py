"""What was looked at, in order, and how it was found."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Annotated, Literal

from msgspec import Meta, Struct

from gpuherd.model.errors import Failed
from gpuherd.model.text import SENTENCE_LENGTH, clean

__all__ = ["Journal", "State", "Step", "StepFailed", "broken", "is_well", "plural"]

State = Literal["ok", "failed", "skipped"]


class Step(Struct, frozen=True, kw_only=True):
    """One thing that must work."""

    name: str
    state: State
    seconds: Annotated[float | None, Meta(description="How long it took; none if it was not tried.")] = None
    fact: Annotated[str, Meta(description="What was found, in a few words.")] = ""
    remedy: Annotated[
        str | None,
        Meta(description="What is wrong and how to fix it, in one sentence; only for failed steps."),
    ] = None


class StepFailed(Failed):
    """A step is broken: what was found in a few words, and the sentence that says what to do."""

    def __init__(self, fact: str, remedy: str) -> None:
        super().__init__(remedy)
        self.fact = fact
        self.remedy = remedy


def broken(steps: Sequence[Step]) -> list[Step]:
    """Give the steps that failed; the first is the cause, as far as one can know."""
    return [step for step in steps if step.state == "failed"]


def is_well(steps: Sequence[Step]) -> bool:
    """Tell whether nothing is broken."""
    return not broken(steps)


def plural(count: int, noun: str) -> str:
    """Count things: ``1 GPU``, ``2 GPUs``, ``no processes``."""
    if count == 1:
        return f"1 {noun}"
    many = f"{noun}es" if noun.endswith("s") else f"{noun}s"
    return f"{count or 'no'} {many}"


class Journal:
    """Writes steps down and tells each as soon as it is known. Everything told is cleaned: nodes have a say in it."""

    def __init__(
        self,
        tell: Callable[[Step], None] = lambda _: None,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._tell = tell
        self._monotonic = monotonic
        self._last_at = monotonic()
        self.steps: list[Step] = []

    def start(self) -> None:
        """Count the time of the next step from now."""
        self._last_at = self._monotonic()

    def ok(self, name: str, fact: str, seconds: float | None = None) -> None:
        """It works. ``seconds``: how long it took, if not since the step before."""
        self._add(name, "ok", fact, None, seconds)

    def failed(self, name: str, fact: str, remedy: str) -> None:
        """It is broken."""
        self._add(name, "failed", fact, remedy)

    def skipped(self, name: str, fact: str = "") -> None:
        """It was not tried, or there is nothing to try."""
        self._add(name, "skipped", fact, None)

    def skip_all(self, names: Sequence[str]) -> None:
        """Nothing of this can be tried because of what failed before."""
        for name in names:
            self.skipped(name)

    def take(self, step: Step) -> None:
        """Write down what another journal has found."""
        self.steps.append(step)
        self._tell(step)

    def _add(
        self, name: str, state: State, fact: str, remedy: str | None, seconds: float | None = None
    ) -> None:
        now = self._monotonic()
        if state != "skipped":
            seconds = round(now - self._last_at if seconds is None else seconds, 3)
        # What is told of one step is not told of the next again.
        self._last_at = now if seconds is None else min(now, self._last_at + seconds)
        self.take(
            Step(
                name=name,
                state=state,
                seconds=seconds,
                fact=clean(fact, SENTENCE_LENGTH),
                remedy=None if remedy is None else clean(remedy, SENTENCE_LENGTH),
            )
        )
