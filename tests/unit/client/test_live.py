"""Feeds: what they bring, and that they end."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from gpuherd.client.herd_views import Herd
from gpuherd.client.live import MOST_WAITING, Condition, Feed, News, PictureFeed, Shut
from gpuherd.client.live_messages import HerdChange
from gpuherd.model.errors import Failed, Misconfigured
from support.watched_herd import made_up_herd

PATIENCE_SECONDS = 20.0


class Lens:
    """Something to look through, which tells how it was used."""

    def __init__(self, *looks: Herd | Exception) -> None:
        self._looks = iter(looks)
        self.log: list[str] = []

    @contextmanager
    def open(self) -> Iterator[Callable[[], Herd]]:
        self.log.append("open")
        try:
            yield self._look
        finally:
            self.log.append("closed")

    def _look(self) -> Herd:
        seen = next(self._looks)
        self.log.append("look")
        if isinstance(seen, Exception):
            raise seen
        return seen


def brought(feed: Feed, count: int) -> list[News]:
    """Start a feed and take so much news, then stop it."""
    came: queue.Queue[News] = queue.Queue()

    def wake() -> None:
        for news in feed.take():
            came.put(news)

    feed.start(wake)
    taken = [came.get(timeout=PATIENCE_SECONDS) for _ in range(count)]
    feed.stop()
    assert feed._thread is not None
    feed._thread.join(PATIENCE_SECONDS)
    assert not feed._thread.is_alive()
    return taken


def test_it_is_opened_once_and_what_fails_now_may_work_later() -> None:
    herd = made_up_herd()
    lens = Lens(herd, Failed("the driver hangs"), herd, *[herd] * 50)
    feed = PictureFeed("here", lens.open, every_seconds=0.01)
    news = brought(feed, 5)
    assert [type(each) for each in news] == [HerdChange, Condition, Condition, HerdChange, Condition]
    assert [each.phase for each in news if isinstance(each, Condition)] == ["live", "away", "live"]
    assert isinstance(news[2], Condition)
    assert news[2].reason == "the driver hangs"
    assert (lens.log[0], lens.log[-1], lens.log.count("open")) == ("open", "closed", 1)


def test_what_can_never_work_is_the_end() -> None:
    error = Misconfigured("gpuherd.toml line 3: no such key")
    lens = Lens(error)
    assert brought(PictureFeed("here", lens.open, every_seconds=0.01), 1) == [Shut(error)]
    assert lens.log == ["open", "look", "closed"]


def test_nobody_looks_while_it_is_paused() -> None:
    lens = Lens(*[made_up_herd()] * 1000)
    feed = PictureFeed("here", lens.open, every_seconds=0.01)
    feed.pause()
    resumed = threading.Timer(0.05, feed.resume)
    resumed.start()
    assert lens.log == []
    assert isinstance(brought(feed, 1)[0], HerdChange)
    resumed.join()


def test_what_nobody_takes_does_not_pile_up() -> None:
    lens = Lens(*[made_up_herd()] * 1000)
    feed = PictureFeed("here", lens.open, every_seconds=0.0)
    full = threading.Event()
    feed.start(lambda: full.set() if len(feed._waiting) >= MOST_WAITING else None)
    assert full.wait(PATIENCE_SECONDS)
    feed.stop()
    assert feed._thread is not None
    feed._thread.join(PATIENCE_SECONDS)
    assert not feed._thread.is_alive()
    assert len(feed.take()) <= MOST_WAITING + 2
