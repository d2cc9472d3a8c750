"""The page for a proxy that passes on one address: written seldom, and again after a failure."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from gpuherd.api.errors import HttpError
from gpuherd.api.one_page import KEPT_SECONDS, OnePage
from gpuherd.model.people import PrivacyClass, Viewer


class Asked:
    """One page, and how often it was written for whom."""

    def __init__(self) -> None:
        self.now = 0.0
        self.views: list[PrivacyClass] = []
        self.fails = False
        self.page = OnePage(self._view, lambda view: f"for {view}".encode(), monotonic=lambda: self.now)

    async def _view(self, privacy: PrivacyClass) -> Any:
        self.views.append(privacy)
        await asyncio.sleep(0)
        if self.fails:
            raise HttpError(503, "busy", "later")
        return privacy

    async def ask(self, privacy: PrivacyClass | None, method: str = "GET") -> tuple[int, bytes]:
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        await self.page.serve({"method": method}, send, Viewer(account=None, privacy=privacy))
        return sent[0]["status"], sent[1]["body"]


def test_each_class_is_written_once_in_a_while() -> None:
    async def story() -> None:
        asked = Asked()
        answers = await asyncio.gather(*(asked.ask(who) for who in ("names", "names", "public", "member")))
        assert [body for _, body in answers] == [b"for names", b"for names", b"for public", b"for member"]
        assert asked.views == ["names", "public", "member"]
        asked.now = KEPT_SECONDS - 1
        assert await asked.ask("names", "HEAD") == (200, b"")
        assert len(asked.views) == 3
        asked.now = KEPT_SECONDS
        await asked.ask("names")
        assert len(asked.views) == 4

    asyncio.run(story())


def test_nothing_is_written_for_who_sees_nothing_or_only_totals() -> None:
    async def story() -> None:
        asked = Asked()
        for who in (None, "counts"):
            status, body = await asked.ask(who)
            assert (status, b"with the star" in body) == (401, True)
        with pytest.raises(HttpError, match="can only be read"):
            await asked.ask("names", "POST")
        assert asked.views == []

    asyncio.run(story())


def test_a_failure_is_not_kept() -> None:
    async def story() -> None:
        asked = Asked()
        asked.fails = True
        with pytest.raises(HttpError, match="later"):
            await asked.ask("names")
        asked.fails = False
        assert await asked.ask("names") == (200, b"for names")

    asyncio.run(story())
