"""How many nodes are dialled at a time, without dead ones keeping living ones waiting."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager

__all__ = ["DialGate"]

PROMPT_SECONDS = 0.25
"""A living node has answered by then, also one on another continent."""
DOUBTED_SHARE = 4
MAX_DOUBTED = 100_000


class DialGate:
    """Bounds how many nodes are dialled at a time.

    One that does not answer promptly gives its place to the next: waiting for it costs a socket and nothing else, and
    no more of them than there are nodes. From then on it is doubted: its dials wait in a line of their own, a quarter
    as wide, until one of them goes well. So a rack that is down delays the others by a moment, and only once.
    """

    def __init__(self, at_once: int, *, prompt_seconds: float = PROMPT_SECONDS) -> None:
        self._prompt_seconds = prompt_seconds
        self._trusted = asyncio.Semaphore(at_once)
        self._doubtful = asyncio.Semaphore(max(1, at_once // DOUBTED_SHARE))
        self._doubted: set[Hashable] = set()

    def doubts(self, node: Hashable) -> bool:
        """Whether the last dial of a node was slow or failed."""
        return node in self._doubted

    @asynccontextmanager
    async def place(self, node: Hashable) -> AsyncIterator[None]:
        """Hold while a node is dialled."""
        line = self._doubtful if node in self._doubted else self._trusted
        await line.acquire()
        is_prompt = True

        def give_up_place() -> None:
            nonlocal is_prompt
            is_prompt = False
            line.release()

        timer = asyncio.get_running_loop().call_later(self._prompt_seconds, give_up_place)
        try:
            yield
        except asyncio.CancelledError:  # at a deadline, or because nobody wants it any more
            self._judge(node, is_good=is_prompt)
            raise
        except BaseException:
            self._judge(node, is_good=False)
            raise
        else:
            self._judge(node, is_good=True)
        finally:
            timer.cancel()
            if is_prompt:
                line.release()

    def _judge(self, node: Hashable, *, is_good: bool) -> None:
        if is_good:
            self._doubted.discard(node)
            return
        if len(self._doubted) >= MAX_DOUBTED:
            self._doubted.clear()
        self._doubted.add(node)
