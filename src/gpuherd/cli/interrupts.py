"""Signals while a command waits or books: nothing may be left half done."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Self

__all__ = ["Interrupted", "Interrupts"]


class Interrupted(BaseException):
    """Someone wants the command to end: Ctrl-C, or a polite kill."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number

    @property
    def exit_code(self) -> int:
        """As shells tell of signals."""
        return 128 + self.number


class Interrupts:
    """Turns the first signal into ``Interrupted``; later ones are only counted, so that tidying up is not cut short.

    Signals that are ignored from the start, as under nohup, stay so.
    """

    NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def __init__(self) -> None:
        self.count = 0
        self._depth = 0
        self._noted: int | None = None
        self._is_raised = False
        self._before: dict[int, object] = {}

    def __enter__(self) -> Self:
        for number in self.NUMBERS:
            if signal.getsignal(number) != signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._on)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def _on(self, number: int, _frame: FrameType | None) -> None:
        self.count += 1
        if self._is_raised:
            return
        if self._depth:
            self._noted = self._noted or number
            return
        self._is_raised = True
        raise Interrupted(number)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Let what is within be done in one piece: a signal meanwhile is told at its end."""
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
            if not self._depth and self._noted is not None and not self._is_raised:
                self._is_raised = True
                raise Interrupted(self._noted)

    def finish(self) -> None:
        """From now on, signals are only counted: what is left to do is to tidy up."""
        self._is_raised = True

    def ignore(self) -> None:
        """From now on and until the process has ended, signals change nothing: what was done is done, and told."""
        self._is_raised = True
        for number in self._before:
            signal.signal(number, signal.SIG_IGN)
        self._before.clear()
