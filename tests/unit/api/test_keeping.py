"""News waits while the store fails; only what is saved is passed on as safe."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping

import pytest
from msgspec import structs

from gpuherd.api import keeping
from gpuherd.api.keeping import Keeper
from gpuherd.model.errors import Failed
from gpuherd.records.last_reports import LastReport
from support.herd import ManualClock
from support.running import PATIENCE_SECONDS

KEPT = LastReport(
    node_id="a", received_at=1.0, hello=b"", facts=None, table=None, sample=b"1", runs={"boot": 1}, states=b""
)


class Store:
    def __init__(self) -> None:
        self.saves = 0
        self.saved: list[LastReport] = []
        self.forgotten: list[str] = []
        self.error: Failed | None = None
        self.gate = threading.Event()
        self.gate.set()

    def save(self, batch: Iterable[LastReport]) -> None:
        self.saves += 1
        self.gate.wait(PATIENCE_SECONDS)
        if self.error is not None:
            raise self.error
        self.saved.extend(batch)

    def forget(self, node_id: str) -> None:
        self.forgotten.append(node_id)

    def close(self) -> None:
        pass


class Stage:
    def __init__(self) -> None:
        self.store = Store()
        self.news: list[LastReport] = []
        self.safe: list[tuple[str, Mapping[str, int]]] = []
        self.keeper = Keeper(
            self.store,
            take_unsaved=self._take,
            note_saved=self.safe.extend,
            clock=ManualClock(),
        )

    def _take(self) -> list[LastReport]:
        taken, self.news = self.news, []
        return taken


def play(story: Callable[[Stage], Awaitable[None]]) -> None:
    async def run() -> None:
        stage = Stage()
        try:
            await story(stage)
        finally:
            stage.store.gate.set()
            stage.keeper.close()

    asyncio.run(run())


def test_saved_news_is_safe() -> None:
    async def story(stage: Stage) -> None:
        stage.news = [KEPT]
        await stage.keeper.flush()
        assert stage.store.saved == [KEPT]
        assert stage.safe == [("a", {"boot": 1})]
        await stage.keeper.flush()
        assert len(stage.store.saved) == 1

    play(story)


def test_while_the_disk_is_full_nothing_is_safe_and_nothing_is_lost() -> None:
    async def story(stage: Stage) -> None:
        stage.store.error = Failed("no space")
        newer = structs.replace(KEPT, sample=b"2", runs={"boot": 2})
        for news in (KEPT, newer):
            stage.news = [news]
            with pytest.raises(Failed):
                await stage.keeper.flush()
        assert stage.safe == []
        health = stage.keeper.health()
        assert (health.state, health.waiting_nodes, health.last_error) == ("failing", 1, "no space")
        stage.store.error = None
        await stage.keeper.flush()
        assert stage.store.saved == [newer]
        assert stage.safe == [("a", {"boot": 2})]
        assert (stage.keeper.health().state, stage.keeper.health().waiting_nodes) == ("ok", 0)

    play(story)


def test_a_disk_that_hangs_is_not_given_more_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "WRITE_SECONDS", 0.05)

    async def story(stage: Stage) -> None:
        stage.store.gate.clear()
        stage.news = [KEPT]
        for _ in range(3):
            with pytest.raises(Failed, match=r"takes longer than 0\.05 s; check the hub's disk"):
                await stage.keeper.flush()
            assert (stage.keeper.health().state, stage.safe, stage.store.saves) == ("failing", [], 1)
        monkeypatch.setattr(keeping, "WRITE_SECONDS", PATIENCE_SECONDS)
        stage.news = [structs.replace(KEPT, runs={"boot": 2})]
        flushing = asyncio.create_task(stage.keeper.flush())
        await asyncio.sleep(0)
        stage.store.gate.set()
        await flushing
        # What the slow write saved is acknowledged, and what came meanwhile follows at once.
        assert stage.safe == [("a", {"boot": 1}), ("a", {"boot": 2})]
        assert stage.keeper.health().state == "ok"

    play(story)


def test_news_that_comes_while_saving_is_saved_next() -> None:
    async def story(stage: Stage) -> None:
        stage.store.gate.clear()
        stage.news = [KEPT]
        flushing = asyncio.create_task(stage.keeper.flush())
        await asyncio.sleep(0)
        stage.news = [structs.replace(KEPT, runs={"boot": 2})]
        stage.store.gate.set()
        await flushing
        assert stage.safe == [("a", {"boot": 1})]
        await stage.keeper.flush()
        assert stage.safe[1:] == [("a", {"boot": 2})]

    play(story)


def test_a_removed_node_is_forgotten_before_anything_is_saved() -> None:
    async def story(stage: Stage) -> None:
        stage.store.error = Failed("no space")
        stage.news = [KEPT]
        with pytest.raises(Failed):
            await stage.keeper.flush()
        stage.store.error = None
        stage.keeper.forget("a")
        await stage.keeper.flush()
        assert (stage.store.forgotten, stage.store.saved, stage.safe) == (["a"], [], [])

    play(story)
