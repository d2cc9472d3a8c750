"""PostgreSQL as the place of the records: nothing waits for it without end.

A living server keeps its own time limits (``statement_timeout`` and the like). One that is frozen, or cut off by the
network, keeps none, and its kernel may go on acknowledging what is sent: so the connection itself is cut when it has
been in use for too long.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import threading
import time
from typing import Any

from sqlalchemy import Engine, create_engine, event
from sqlalchemy.engine import URL
from sqlalchemy.exc import DisconnectionError

__all__ = ["postgresql_engine"]

CONNECT_SECONDS = 5
STATEMENT_SECONDS = 8
"""Also for locks: a statement that waits for another's transaction gives up then."""
TRANSACTION_SECONDS = 10
POOL_SECONDS = 10
IDLE_IN_TRANSACTION_SECONDS = 15
"""After which the server ends the transaction of a hub that stands still, so that it does not hold up others."""

LINGER_SECONDS = 30


class _Cutter:
    """Cuts connections that have been in use for too long. Its thread ends when there is nothing to do for long."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._lock = threading.Lock()
        self._in_use: dict[int, tuple[float, socket.socket]] = {}
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None

    def checked_out(self, connection: Any, record: Any, _: Any) -> None:
        """Begin the time of a connection; one that died in the pool is not handed out."""
        poll = select.poll()
        poll.register(connection.fileno(), select.POLLIN)
        if poll.poll(0):
            # Between transactions a server only speaks to say farewell. Costs no question to it, unlike a ping.
            raise DisconnectionError("the server has closed the connection")
        # A descriptor of our own: the connection's may be closed, and its number be another's, when time is up.
        held = socket.socket(fileno=os.dup(connection.fileno()))
        with self._lock:
            self._drop(id(record))
            self._in_use[id(record)] = (time.monotonic() + self._seconds, held)
            if self._thread is None:
                self._thread = threading.Thread(target=self._watch, name="records-cutter", daemon=True)
                self._thread.start()
            self._wake.set()

    def checked_in(self, _: Any, record: Any) -> None:
        """End the time of a connection."""
        with self._lock:
            self._drop(id(record))

    def _drop(self, key: int) -> None:
        if (entry := self._in_use.pop(key, None)) is not None:
            entry[1].close()

    def _watch(self) -> None:
        while True:
            if not self._wake.wait(LINGER_SECONDS):
                with self._lock:
                    if not self._in_use:
                        self._thread = None
                        return
            # A cut half a second late is no harm.
            time.sleep(0.5)
            now = time.monotonic()
            with self._lock:
                for key, (deadline, held) in list(self._in_use.items()):
                    if deadline <= now:
                        with contextlib.suppress(OSError):  # it may be closed already
                            held.shutdown(socket.SHUT_RDWR)
                        self._drop(key)
                if not self._in_use:
                    self._wake.clear()


def postgresql_engine(url: URL, *, transaction_seconds: float = TRANSACTION_SECONDS) -> Engine:
    """Prepare connections to PostgreSQL; none is made yet. What the URL says comes before what is set here."""
    is_long = transaction_seconds > TRANSACTION_SECONDS
    limits = {
        "statement_timeout": 0 if is_long else STATEMENT_SECONDS * 1000,
        "lock_timeout": (60 if is_long else STATEMENT_SECONDS) * 1000,
        "idle_in_transaction_session_timeout": IDLE_IN_TRANSACTION_SECONDS * 1000,
    }
    arguments: dict[str, object] = {
        "connect_timeout": CONNECT_SECONDS,
        "tcp_user_timeout": TRANSACTION_SECONDS * 1000,
        "keepalives_idle": 10,
        "keepalives_interval": 5,
        "keepalives_count": 3,
        "application_name": "gpuherd",
    }
    arguments = {name: value for name, value in arguments.items() if name not in url.query}
    said = url.query.get("options", "")
    arguments["options"] = " ".join(
        [
            *(f"-c {name}={value}" for name, value in limits.items()),
            *([said] if isinstance(said, str) else said),
        ]
    )
    engine = create_engine(
        url.difference_update_query(["options"]),
        pool_timeout=POOL_SECONDS,
        hide_parameters=True,  # digests shall not get into logs by way of an error's text
        connect_args=arguments,
    )
    cutter = _Cutter(transaction_seconds)
    event.listen(engine, "checkout", cutter.checked_out)
    event.listen(engine, "checkin", cutter.checked_in)
    return engine
