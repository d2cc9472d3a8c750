"""A proxy that passes everything on, and on demand loses the answer to one request and hangs up."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["LossyProxy", "lossy_proxy"]

Address = str | tuple[str, int]
"""The path of a socket file, or a host and a port."""


def _socket(address: Address) -> socket.socket:
    return socket.socket(socket.AF_UNIX if isinstance(address, str) else socket.AF_INET)


class LossyProxy:
    """Takes connections until it is closed."""

    def __init__(self, listening: socket.socket, server: Address) -> None:
        self.address: Address = listening.getsockname()
        self.lost = 0
        """Answers that did not come back."""
        self._listening = listening
        self._server = server
        self._lock = threading.Lock()
        self._wanted: tuple[bytes, bytes] | None = None
        self._open: set[socket.socket] = set()
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def lose_answer(self, to: bytes, *, after: bytes = b"") -> None:
        """Lose the next answer to what holds ``to``, on a connection that has sent ``after`` before."""
        with self._lock:
            self._wanted = (after, to)

    def close(self) -> None:
        for line in (self._listening, *self._open):
            with contextlib.suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)
            line.close()
        self._accepting.join(10)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            server = _socket(self._server)
            server.connect(self._server)
            self._open |= {client, server}
            is_losing = threading.Event()
            for work in (self._ask, self._answer):
                threading.Thread(target=work, args=(client, server, is_losing), daemon=True).start()

    def _ask(self, client: socket.socket, server: socket.socket, is_losing: threading.Event) -> None:
        sent = b""
        with contextlib.suppress(OSError):
            while data := client.recv(65_536):
                sent += data
                with self._lock:
                    if self._wanted is not None and self._is_wanted(sent, len(data)):
                        self._wanted = None
                        is_losing.set()
                server.sendall(data)
            server.shutdown(socket.SHUT_WR)

    def _is_wanted(self, sent: bytes, newest: int) -> bool:
        assert self._wanted is not None
        after, to = self._wanted
        return after in sent and to in sent[-newest - len(to) :]

    def _answer(self, client: socket.socket, server: socket.socket, is_losing: threading.Event) -> None:
        with contextlib.suppress(OSError):
            while data := server.recv(65_536):
                if is_losing.is_set():
                    self.lost += 1
                    break
                client.sendall(data)
        for line in (client, server):
            with contextlib.suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)


@contextmanager
def lossy_proxy(server: Address, address: Address = ("127.0.0.1", 0)) -> Iterator[LossyProxy]:
    """Listen at an address for a server."""
    listening = _socket(address)
    listening.bind(address)
    listening.listen()
    proxy = LossyProxy(listening, server)
    try:
        yield proxy
    finally:
        proxy.close()
