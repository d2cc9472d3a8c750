"""What a service tells systemd that started it: that it is ready, how it fares, that it lives, that it stops.

The protocol is one datagram per message (sd_notify(3)); without systemd nothing is sent. The watchdog is fed only
while the event loop turns (which runs ``keep_told``) *and* the work counts on: a process that hangs is restarted, one
whose work fails is not, because it tries again by itself.
"""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import NamedTuple

from gpuherd.model.text import clip

__all__ = ["Pulse", "Systemd", "keep_told", "told", "told_of_start"]

log = logging.getLogger(__name__)

LOOK_SECONDS = 5.0
"""How often the status is renewed, unless the watchdog wants to hear sooner."""
FIRST_LOOK_SECONDS = 0.05
STATUS_LENGTH = 200
START_PATIENCE_SECONDS = 120
"""A start that does nothing for so long hangs; as TimeoutStartSec= of the hub's unit."""
_IDLE_CPU_SECONDS = 0.01
"""A process that has used less between two looks did not work: looking costs some, too."""


class Pulse(NamedTuple):
    """How a service fares, as it sees itself."""

    beats: int
    """Rounds of its work so far, also those that failed."""
    longest_silence_seconds: float
    """If ``beats`` stands still for longer, the work hangs."""
    is_ready: bool
    status: str
    """One line, without secrets: ``systemctl status`` shows it to everyone."""


class Systemd:
    """The line to systemd; mute where systemd did not start us."""

    def __init__(self, address: str | None = None, watchdog_seconds: float | None = None) -> None:
        """``address`` is a socket's path, or with a leading ``@`` its name in the abstract namespace."""
        self._address = address
        self.watchdog_seconds = watchdog_seconds

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Systemd:
        """Find the line in the environment that systemd gives its services."""
        address = environment.get("NOTIFY_SOCKET", "")
        if not address.startswith(("/", "@")):
            return cls()
        # The variables are inherited: a watchdog for another process is not ours to feed.
        is_ours = environment.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        microseconds = environment.get("WATCHDOG_USEC", "")
        if is_ours and microseconds.isascii() and microseconds.isdigit() and int(microseconds) > 0:
            return cls(address, int(microseconds) / 1e6)
        return cls(address)

    @property
    def is_there(self) -> bool:
        """Whether anyone listens."""
        return self._address is not None

    def tell(self, *assignments: str) -> None:
        """Send ``READY=1`` and the like, one message. A message that cannot be sent is logged and lost."""
        if self._address is None:
            return
        address = f"\0{self._address[1:]}" if self._address.startswith("@") else self._address
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as line:
                line.setblocking(False)  # a full queue must not hold up the event loop
                line.connect(address)
                line.sendall("\n".join(assignments).encode())
        except OSError as error:
            log.warning("cannot send %s to systemd: %s", assignments[0].partition("=")[0], error.strerror)

    def tell_stopping(self) -> None:
        """Say that the end has begun."""
        self.tell("STOPPING=1", "STATUS=stopping")


class Effort(NamedTuple):
    """What a process has done so far, as the kernel counts it."""

    cpu_seconds: float
    blocks: int
    """Blocks of disks that were read and written."""

    @classmethod
    def of_this_process(cls) -> Effort:
        """Ask the kernel."""
        used = resource.getrusage(resource.RUSAGE_SELF)
        return cls(used.ru_utime + used.ru_stime, used.ru_inblock + used.ru_oublock)

    def is_work_since(self, before: Effort) -> bool:
        """Tell whether anything was done since ``before``."""
        return self.blocks > before.blocks or self.cpu_seconds - before.cpu_seconds > _IDLE_CPU_SECONDS


@contextmanager
def told_of_start(
    systemd: Systemd,
    *,
    effort: Callable[[], Effort] = Effort.of_this_process,
    look_seconds: float = LOOK_SECONDS,
) -> Iterator[None]:
    """Ask systemd for more time while the body, a start of unknown length, works; a start that hangs gets none.

    A hub that brings years of records into a new form, or reads a long journal, must not be ended in the midst of it,
    only to begin anew. A thread asks: such work holds up the event loop.
    """
    if not systemd.is_there:
        yield
        return
    is_over = threading.Event()

    def ask() -> None:
        began_at, before = time.monotonic(), effort()
        while not is_over.wait(look_seconds):
            now = effort()
            if now.is_work_since(before):
                systemd.tell(
                    f"EXTEND_TIMEOUT_USEC={START_PATIENCE_SECONDS * 1_000_000}",
                    f"STATUS=starting since {time.monotonic() - began_at:.0f} s",
                )
            before = now

    asking = threading.Thread(target=ask, name="report progress to systemd", daemon=True)
    asking.start()
    try:
        yield
    finally:
        is_over.set()
        asking.join()


@asynccontextmanager
async def told(systemd: Systemd, look: Callable[[], Pulse]) -> AsyncIterator[None]:
    """Keep systemd told while the body runs, and that it stops after it."""
    telling = asyncio.create_task(keep_told(systemd, look), name="tell systemd")
    try:
        yield
    finally:
        telling.cancel()
        await asyncio.gather(telling, return_exceptions=True)
        systemd.tell_stopping()


async def keep_told(
    systemd: Systemd, look: Callable[[], Pulse], monotonic: Callable[[], float] = time.monotonic
) -> None:
    """Tell systemd how a service fares until cancelled; returns at once if there is nobody to tell."""
    if not systemd.is_there:
        return
    feed_seconds = LOOK_SECONDS
    if systemd.watchdog_seconds is not None:
        feed_seconds = min(LOOK_SECONDS, systemd.watchdog_seconds / 4)
    is_told_ready = False
    said = ""
    beats, beaten_at = -1, monotonic()
    is_hung = False
    while True:
        pulse = look()
        messages = []
        if pulse.beats != beats:
            beats, beaten_at, is_hung = pulse.beats, monotonic(), False
        silence_seconds = monotonic() - beaten_at
        if silence_seconds <= pulse.longest_silence_seconds:
            messages.append("WATCHDOG=1")
        elif not is_hung:
            is_hung = True
            log.error(
                "no progress for %.0f s; letting the systemd watchdog restart this service", silence_seconds
            )
        if pulse.is_ready and not is_told_ready:
            messages.append("READY=1")
            is_told_ready = True
        status = clip(pulse.status, STATUS_LENGTH).replace("\n", " ")
        if status != said:
            messages.append(f"STATUS={status}")
            said = status
        if messages:
            systemd.tell(*messages)
        await asyncio.sleep(feed_seconds if is_told_ready else min(FIRST_LOOK_SECONDS, feed_seconds))
