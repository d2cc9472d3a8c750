"""Request bodies: how large, how slow, and how many bytes of them the hub holds at a time.

A body is charged as it arrives, to the whole hub and to the sender's address. So a sender who leaves bodies unfinished
fills its own share, not the hub's memory.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from typing import NamedTuple, Never

from gpuherd.api.asgi import Message, Receive, Scope, header
from gpuherd.api.errors import HttpError

__all__ = ["MAX_BODY_BYTES", "SMALL_BODY_BYTES", "Body", "BodyBudget", "BodyRule", "has_body"]

MAX_BODY_BYTES = 1_048_576
SMALL_BODY_BYTES = 8_192
"""For addresses that anyone may post to: a name and a password, or a token."""
BUDGET_BYTES = 64 * 2**20
SHARE_BYTES = 8 * 2**20
"""For each address. Strangers may use half of the budget, and a quarter of their address's share.

The first body of an address may use three quarters of the budget: otherwise a few addresses could keep everybody else
from logging in.
"""
LEAST_CHARGE = 16_384
"""Charged for any body: about what a waiting request costs besides."""


class BodyRule(NamedTuple):
    """What holds for the bodies of one kind of request."""

    max_bytes: int
    seconds: float


class BodyBudget:
    """Bytes of all bodies that are being read."""

    def __init__(self, *, total_bytes: int = BUDGET_BYTES, share_bytes: int = SHARE_BYTES) -> None:
        self._total_bytes = total_bytes
        self._share_bytes = share_bytes
        self._by_place: dict[str, int] = {}
        self.held_bytes = 0

    @contextlib.contextmanager
    def reading(
        self, scope: Scope, receive: Receive, rule: BodyRule, *, place: str, is_known: bool
    ) -> Iterator[Body]:
        """Give a ``receive`` that raises ``HttpError`` for a body that is too large, slow, unfinished or one too many.

        ``place`` is the sender's address or network; ``is_known`` is true for nodes and people who are logged in.
        """
        if _announced(scope) > rule.max_bytes:
            _refuse_size(rule)
        body = Body(self, receive, rule, place=place, is_known=is_known)
        if has_body(scope):
            body.charge(LEAST_CHARGE)
        try:
            yield body
        finally:
            self.release(place, body.charged)

    def check(self, place: str, *, is_known: bool, count: int = LEAST_CHARGE) -> None:
        """Raise ``HttpError`` 503 if there is no room for a body."""
        used = self._by_place.get(place, 0)
        quarters = 4 if is_known else 2 if used else 3
        total_bytes = self._total_bytes * quarters // 4
        share_bytes = self._share_bytes if is_known else self._share_bytes // 4
        if used + count > share_bytes or self.held_bytes + count > total_bytes:
            raise HttpError(
                503,
                "too_many_bodies",
                "too many requests at once, from your address or in total; try again in a moment",
                headers={"Retry-After": "2"},
            )

    def charge(self, place: str, count: int, *, is_known: bool) -> None:
        """Count bytes; ``HttpError`` 503 if there are too many already."""
        self.check(place, is_known=is_known, count=count)
        self._by_place[place] = self._by_place.get(place, 0) + count
        self.held_bytes += count

    def release(self, place: str, count: int) -> None:
        """Take back what was charged."""
        self.held_bytes -= count
        left = self._by_place.get(place, 0) - count
        if left > 0:
            self._by_place[place] = left
        else:
            self._by_place.pop(place, None)


class Body:
    """A ``receive`` that counts."""

    def __init__(
        self, budget: BodyBudget, receive: Receive, rule: BodyRule, *, place: str, is_known: bool
    ) -> None:
        self._budget = budget
        self._receive = receive
        self._rule = rule
        self._place = place
        self._is_known = is_known
        self._due = asyncio.get_running_loop().time() + rule.seconds
        self._received = 0
        self._is_whole = False
        self._kept: Message | None = None
        self.charged = 0

    async def __call__(self) -> Message:
        if self._kept is not None:
            kept, self._kept = self._kept, None
            return kept
        return await (self._receive() if self._is_whole else self._next())

    async def receive_all(self) -> None:
        """Wait for the whole body now, and give it in one piece later."""
        parts: list[bytes] = []
        while not self._is_whole:
            parts.append((await self._next()).get("body", b""))
        self._kept = {"type": "http.request", "body": b"".join(parts), "more_body": False}

    async def _next(self) -> Message:
        try:
            async with asyncio.timeout_at(self._due):
                message = await self._receive()
        except TimeoutError:
            raise HttpError(408, "timeout", f"the body took longer than {self._rule.seconds:g} s") from None
        if message["type"] != "http.request":
            raise HttpError(400, "invalid_request", "the body is broken or ended early")
        self._received += len(message.get("body", b""))
        if self._received > self._rule.max_bytes:
            _refuse_size(self._rule)
        if self._received > self.charged:
            self.charge(self._received - self.charged)
        self._is_whole = not message.get("more_body", False)
        return message

    def charge(self, count: int) -> None:
        """Count bytes of this body."""
        self._budget.charge(self._place, count, is_known=self._is_known)
        self.charged += count


def has_body(scope: Scope) -> bool:
    """Tell whether a request announces a body."""
    length = header(scope, b"content-length")
    return length not in (None, "0") or header(scope, b"transfer-encoding") is not None


def _announced(scope: Scope) -> int:
    length = header(scope, b"content-length") or "0"
    return int(length[:16]) if length.isascii() and length.isdigit() else 0


def _refuse_size(rule: BodyRule) -> Never:
    raise HttpError(413, "body_too_large", f"the body is larger than {rule.max_bytes // 1024} KiB")
