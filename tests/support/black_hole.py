"""An address at which everything that is sent gets lost: connecting to it neither succeeds nor fails."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager


@contextmanager
def black_hole(host: str = "127.0.0.1") -> Iterator[int]:
    """Give a port whose queue of new connections is full: the kernel drops what else knocks."""
    with ExitStack() as stack:
        full = stack.enter_context(socket.socket())
        full.bind((host, 0))
        full.listen(0)
        address = full.getsockname()
        for _ in range(8):
            caller = stack.enter_context(socket.socket())
            caller.settimeout(0.05)
            try:
                caller.connect(address)
            except TimeoutError:
                break
        else:
            raise AssertionError("this kernel takes connections without end")
        yield address[1]
