"""Lists that are files: read with a cap and a deadline, looked at every second for a change."""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
import threading
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

from gpuherd.model.errors import Failed, Misconfigured
from gpuherd.model.targets import Target
from gpuherd.model.text import too_large

__all__ = ["FileFinder", "Reading", "Stamp", "located", "read_text", "stamp"]

MAX_FILE_BYTES = 4 * 1024 * 1024
READ_DEADLINE_SECONDS = 10.0
LOOK_SECONDS = 1.0

Stamp = tuple[int, int, int, int]
"""What tells one state of a file from another: device, inode, time of change in ns, size in bytes."""
T = TypeVar("T")
U = TypeVar("U")


def located(file: Path, base: Path) -> Path:
    """Give the file's full path: ``~`` is the home folder, a relative path begins at ``base``."""
    return base / file.expanduser()


def stamp(file: Path) -> Stamp | None:
    """Give the file's stamp, None if there is no such file to be seen."""
    try:
        seen = file.stat()
    except OSError:
        return None
    return seen.st_dev, seen.st_ino, seen.st_mtime_ns, seen.st_size


def read_text(file: Path) -> str:
    """Read a text file of at most ``MAX_FILE_BYTES``, in UTF-8 with or without a byte-order mark.

    ``Misconfigured`` if a person must mend it, ``Failed`` if it may pass.
    """
    try:
        # A named pipe would block for ever.
        fd = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with open(fd, "rb") as opened:  # noqa: PTH123 - a descriptor, not a path
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise Misconfigured(f"{file}: is not a file; give the path of the file")
            content = opened.read(MAX_FILE_BYTES + 1)
    except FileNotFoundError:
        raise Misconfigured(f"{file}: there is no such file; check the path") from None
    except (PermissionError, IsADirectoryError, NotADirectoryError) as error:
        raise Misconfigured(
            f"{file}: cannot be read ({error.strerror}); let the hub's user read it, or check the path"
        ) from error
    except OSError as error:
        raise Failed(f"{file}: cannot be read now ({error.strerror})") from error
    except ValueError as error:  # a NUL byte in the path
        raise Misconfigured(f"{file!s}: is not a path; check it") from error
    if len(content) > MAX_FILE_BYTES:
        raise Misconfigured(
            f"{file}: {too_large(content, MAX_FILE_BYTES)}; name the right file, or divide it"
        )
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise Misconfigured(f"{file}:1: is UTF-16 text; save the file as UTF-8")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise Misconfigured(
            f"{file}:{line}: is not UTF-8 text (byte {content[error.start]:#04x}); save the file as UTF-8"
        ) from error


class Reading:
    """Does file work in a thread of its own, one piece at a time, and gives up on it after a deadline.

    A file on a network drive that is gone blocks whoever touches it, for hours. The thread is then left behind,
    and no further one is started before it comes back.
    """

    def __init__(self, what: str, deadline_seconds: float = READ_DEADLINE_SECONDS) -> None:
        self._what = what
        self._deadline_seconds = deadline_seconds
        self._is_busy = False

    async def do(self, work: Callable[[], T]) -> T:
        """Give what ``work`` gives or raise what it raises; ``Failed`` if it takes too long."""
        if self._is_busy:
            raise Failed(f"{self._what}: reading still hangs; is its network drive unavailable?")
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()
        self._is_busy = True
        thread = threading.Thread(
            target=self._work, args=(work, answer, loop), name="discovery-reading", daemon=True
        )
        thread.start()
        try:
            async with asyncio.timeout(self._deadline_seconds):
                return await answer
        except TimeoutError:
            raise Failed(
                f"{self._what}: reading did not finish within {self._deadline_seconds:g} s; is its network "
                "drive unavailable?"
            ) from None

    def _work(
        self, work: Callable[[], T], answer: asyncio.Future[T], loop: asyncio.AbstractEventLoop
    ) -> None:
        try:
            outcome = work()
        except Exception as error:  # noqa: BLE001 - raised again where it is awaited
            tell = partial(_tell, answer.set_exception, error, answer)
        else:
            tell = partial(_tell, answer.set_result, outcome, answer)
        self._is_busy = False
        with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile; nobody waits
            loop.call_soon_threadsafe(tell)


def _tell(setter: Callable[[U], None], outcome: U, answer: asyncio.Future[T]) -> None:
    if not answer.done():
        setter(outcome)


class FileFinder:
    """The nodes that a file names; ``parse`` is pure and gets the text and the file's name."""

    def __init__(
        self,
        file: Path,
        parse: Callable[[str, str], tuple[Target, ...]],
        *,
        every_seconds: float,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = str(file)
        self._file = file
        self._parse = parse
        self._every_seconds = every_seconds
        self._sleep = sleep
        self._monotonic = monotonic
        self._reading = Reading(self.name)
        self._seen: tuple[Stamp | None, ...] = ()

    async def find(self) -> tuple[Target, ...]:
        """See ``Finder.find``."""
        # The stamp is taken first: what changes while we read is read again.
        self._seen = await self._reading.do(self._stamps)
        return await self._reading.do(self._read)

    async def wait(self) -> None:
        """Return when the file has changed and stands still again, or after ``every_seconds``."""
        until = self._monotonic() + self._every_seconds
        last = self._seen
        while (left := until - self._monotonic()) > 0:
            await self._sleep(min(LOOK_SECONDS, left))
            try:
                now = await self._reading.do(self._stamps)
            except Failed:
                continue  # find() will say so
            # A file may be away for a moment while it is replaced, or half written: let it come to rest.
            if now != self._seen and now == last:
                return
            last = now

    async def close(self) -> None:
        """Nothing to let go of."""

    def _read(self) -> tuple[Target, ...]:
        return self._parse(read_text(self._file), self.name)

    def _stamps(self) -> tuple[Stamp | None, ...]:
        return (stamp(self._file),)
