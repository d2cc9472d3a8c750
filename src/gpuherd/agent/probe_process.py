"""The agent's side of one probe: start it, ask it, notice that it hangs or died, end it."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import msgspec

from gpuherd.agent.channel import Channel
from gpuherd.agent.exchange import (
    FromProbe,
    Orders,
    Read,
    Reading,
    Started,
    Trouble,
    prefixed,
)
from gpuherd.agent.marker import Marker, Position
from gpuherd.model.errors import Failed, Misconfigured
from gpuherd.model.reports import Problem
from gpuherd.model.text import clean

__all__ = ["KillGroup", "Loss", "Probe", "ProbeLost", "signal_group"]

START_SECONDS = 30.0
"""How long Python may take to start and import on a machine under load; no driver is called in this time."""
SLOW_FACTOR = 6
"""A probe whose calls do move on gets this many deadlines: a loaded machine is slow, not hung."""

PROMPT_SECONDS = 1.25
"""How long a probe that has answered before may wait in a call about one GPU: at an interval of 1 s the others miss two
samples at the most. Only if it waits; one that does not get the CPU has the whole deadline."""
LOOK_SECONDS = 0.1
_SLOW_CALLS = frozenset({"nvmlDeviceGetHandleByIndex"})
"""These may initialise a GPU, which takes seconds."""

Loss = Literal["hung", "crashed", "ended"]
KillGroup = Callable[[int, int], None]

_decoder: msgspec.msgpack.Decoder[FromProbe] = msgspec.msgpack.Decoder(FromProbe)
# Signals by which an operator or the kernel's memory shortage ends a process; all others are the driver's doing.
_OUTSIDE_SIGNALS = frozenset({signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP})


class ProbeLost(Exception):  # noqa: N818 - reads as an event
    """A probe will not answer any more. ``position`` is where it was in the driver."""

    def __init__(self, loss: Loss, position: Position, detail: str) -> None:
        super().__init__(detail)
        self.loss: Loss = loss
        self.position = position


def signal_group(group: int, number: int) -> None:
    """Signal all processes of a group; a group that is gone is fine."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return


class Probe:
    """One child process. ``ask`` is called by one task at a time."""

    def __init__(self, orders: Orders, *, kill_group: KillGroup = signal_group) -> None:
        self.has_gpus = bool(orders.spec.collectors)
        self.is_released = False
        self._kill_group = kill_group
        self._marker = Marker.create()
        ours, theirs = socket.socketpair()
        self._channel = Channel(ours)
        self._is_started = self._has_answered = False
        try:
            # -P: the working directory is not a place to import from; its own session: signals meant for the agent
            # do not reach the probe, and the probe's own children are ended with it.
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-P",
                    "-m",
                    "gpuherd.agent.probe_main",
                    str(theirs.fileno()),
                    str(self._marker.fd),
                    str(os.getpid()),
                ],
                stdin=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(), self._marker.fd),
                start_new_session=True,
            )
        except OSError:
            self._channel.close()
            self._marker.close()
            raise
        finally:
            theirs.close()
        self._orders = orders

    @property
    def pid(self) -> int:
        """The child's process id; also its group."""
        return self._process.pid

    async def ask(self, deadline_seconds: float, problems: tuple[Problem, ...] | None = None) -> Reading:
        """Get one reading; ``problems``, if given, replaces those of the orders.

        Raises ``ProbeLost`` when a call stood still for the deadline or the child died, ``Failed`` when the child
        is well but nothing could be read, ``Misconfigured`` when its orders cannot be carried out.
        """
        if not self._is_started:
            await self._start()
        prompt_seconds = PROMPT_SECONDS if self._has_answered else deadline_seconds
        answer = await self._exchange(prefixed(Read(problems)), deadline_seconds, prompt_seconds)
        self._has_answered = True
        if isinstance(answer, Trouble):
            raise Failed(answer.message)
        if not isinstance(answer, Reading):
            raise Failed("the probe sent an unexpected response")
        return answer

    async def _start(self) -> None:
        answer = await self._exchange(prefixed(self._orders), START_SECONDS)
        if isinstance(answer, Trouble):
            raise Misconfigured(answer.message)
        if not isinstance(answer, Started):
            raise Failed("the probe sent an unexpected response")
        self._is_started = True

    async def _exchange(
        self, message: bytes, deadline_seconds: float, prompt_seconds: float | None = None
    ) -> FromProbe:
        answer = self._channel.expect()
        patience = Patience(
            self._marker,
            answer,
            deadline_seconds,
            min(prompt_seconds or deadline_seconds, deadline_seconds),
            lambda: _is_waiting(self.pid),
        )
        try:
            await self._channel.send(message)
            return _decoder.decode(await answer)
        except ConnectionError as error:
            answer.cancel()
            raise await self._death() from error
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Failed(f"a collector returned an invalid report: {clean(str(error), 300)}") from error
        finally:
            patience.end()

    async def _death(self) -> ProbeLost:
        # What the child had started is ended before its number is given back: the number names the group.
        self.kill()
        await self.gone(1.0)
        code = self._process.returncode
        position = self._marker.position
        if code is None:
            return ProbeLost("hung", position, "the probe closed its channel but does not exit")
        if code < 0:
            name = signal.Signals(-code).name
            loss: Loss = "ended" if -code in _OUTSIDE_SIGNALS or not position.collector else "crashed"
            return ProbeLost(
                loss, position, f"the probe was ended by {name} in {position.call or 'its start'}"
            )
        loss = "crashed" if position.collector else "ended"
        return ProbeLost(
            loss, position, f"the probe exited with code {code} in {position.call or 'its start'}"
        )

    def hang_up(self) -> None:
        """Close the channel: a healthy child ends by itself."""
        self._channel.close()

    def kill(self) -> None:
        """Send SIGKILL to the child and everything it started."""
        # Once the child is reaped and its group empty, the number may be another process's.
        if self._process.returncode is None or _group_lives(self.pid):
            self._kill_group(self.pid, signal.SIGKILL)

    async def gone(self, patience_seconds: float) -> bool:
        """Wait for the child and its own children to be gone; ``False`` if they are still there."""
        until = time.monotonic() + patience_seconds
        while not self.is_gone():
            if time.monotonic() >= until:
                return False
            await asyncio.sleep(0.02)
        return True

    def is_gone(self) -> bool:
        """Whether nothing is left of the child, not even a program it had started."""
        return self._process.poll() is not None and not _group_lives(self.pid)

    def release(self) -> None:
        """Give back the descriptors; only after the child is gone or when the agent itself ends."""
        if not self.is_released:
            self.is_released = True
            self.hang_up()
            self._marker.close()


class Patience:
    """Fails an awaited answer with ``ProbeLost`` when the probe stands still for the deadline."""

    def __init__(
        self,
        marker: Marker,
        answer: asyncio.Future[bytes],
        deadline_seconds: float,
        prompt_seconds: float,
        is_waiting: Callable[[], bool],
    ) -> None:
        """``prompt_seconds``: enough in a call about one GPU, if the probe waits in it (``is_waiting``)."""
        self._prompt_seconds = prompt_seconds
        self._is_waiting = is_waiting
        self._look_seconds = (
            deadline_seconds / 4
            if prompt_seconds == deadline_seconds
            else min(deadline_seconds / 4, LOOK_SECONDS)
        )
        self._marker = marker
        self._answer = answer
        self._deadline_seconds = deadline_seconds
        self._loop = answer.get_loop()
        self._started = self._moved = self._loop.time()
        self._beat = marker.beat
        self._timer = self._loop.call_later(self._look_seconds, self._look)

    def end(self) -> None:
        """The answer is there, or no longer wanted."""
        self._timer.cancel()

    def _look(self) -> None:
        now = self._loop.time()
        if self._marker.beat != self._beat:
            self._beat, self._moved = self._marker.beat, now
        still_seconds = now - self._moved
        is_stuck = still_seconds >= self._deadline_seconds or (
            still_seconds >= self._prompt_seconds and self._is_stuck_on_a_gpu()
        )
        if not is_stuck and now - self._started < self._deadline_seconds * SLOW_FACTOR:
            self._timer = self._loop.call_later(self._look_seconds, self._look)
        elif not self._answer.done():
            position = self._marker.position
            waited = f"no response for {now - self._started:.1f} s in {position.call}"
            self._answer.set_exception(ProbeLost("hung", position, waited))

    def _is_stuck_on_a_gpu(self) -> bool:
        position = self._marker.position
        return position.device >= 0 and position.call not in _SLOW_CALLS and self._is_waiting()


def _is_waiting(pid: int) -> bool:
    """Whether a process waits for something else than the CPU."""
    try:
        stat = Path("/proc", str(pid), "stat").read_bytes()
    except OSError:
        return False
    return stat.rpartition(b")")[2].split()[:1] in ([b"S"], [b"D"])


def _group_lives(group: int) -> bool:
    """Whether a process group has a member that is more than a zombie."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    # Zombies count for killpg, and without a proper init they stay for ever: look at the states.
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_bytes().rpartition(b")")[2].split()
        except OSError:
            continue  # gone since the folder was listed
        if int(fields[2]) == group and fields[0] not in (b"Z", b"X"):
            return True
    return False
