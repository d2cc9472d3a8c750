"""Nodes that enrol are let in at once, without reading all the others again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from gpuherd.api.admission import MAX_LINES, Admission
from gpuherd.api.errors import HttpError
from gpuherd.api.open_records import open_hub_records
from gpuherd.api.record_calls import RecordCalls
from gpuherd.api.settings import HubSettings
from gpuherd.auth.enrolment import Enrolled, Enrolment
from gpuherd.model.errors import Refused
from gpuherd.records.nodes import EnrolledNodes
from support.herd import ManualClock
from support.running import PATIENCE_SECONDS


class CountingEnrolment(Enrolment):
    """Counts how often all records were read."""

    loads = 0
    on_load: Callable[[], None] = staticmethod(lambda: None)

    def load(self) -> EnrolledNodes:
        self.loads += 1
        loaded = super().load()
        self.on_load()
        return loaded


class Stage:
    """An admission with real records, and who is known after what it told."""

    def __init__(self, folder: Path) -> None:
        records = open_hub_records(HubSettings(state_dir=folder))
        self.enrolment = CountingEnrolment(records.nodes)
        self.calls = RecordCalls()
        self.known: set[str] = set()
        self.admission = Admission(
            self.enrolment,
            self.calls,
            ManualClock(),
            on_change=self._changed,
            on_enrolled=lambda node: self.known.add(node.node_id),
        )

    def _changed(self, before: EnrolledNodes | None, now: EnrolledNodes) -> None:
        gone = {node.id for node in before.nodes} - {node.id for node in now.nodes} if before else set()
        self.known = (self.known | {node.id for node in now.nodes}) - gone

    async def enrol(self, name: str) -> Enrolled:
        token = self.enrolment.create_token(now=0.0, lifetime_seconds=2e9)
        return await self.admission.enrol(token=token, name=name, peer="192.0.2.1")


def play(folder: Path, story: Callable[[Stage], Awaitable[None]]) -> None:
    async def run() -> None:
        stage = Stage(folder)
        await stage.admission.refresh()
        try:
            await story(stage)
        finally:
            stage.calls.close()

    asyncio.run(run())


def test_enrolling_many_reads_the_records_no_more_often(tmp_path: Path) -> None:
    async def story(stage: Stage) -> None:
        nodes = [await stage.enrol(f"n{number}") for number in range(20)]
        assert stage.enrolment.loads == 1, "the one of the start"
        assert stage.known == {node.node_id for node in nodes}
        for node in nodes:
            assert stage.admission.node_of(f"Bearer {node.credential}", "192.0.2.1") == node.node_id
        await stage.admission.watch()
        assert stage.enrolment.loads == 2
        assert stage.known == {node.node_id for node in nodes}

    play(tmp_path, story)


def test_a_node_that_was_removed_right_after_it_enrolled_is_forgotten(tmp_path: Path) -> None:
    async def story(stage: Stage) -> None:
        stays, goes = await stage.enrol("stays"), await stage.enrol("goes")
        stage.enrolment.remove("goes", now=1.0)
        await stage.admission.watch()
        assert stage.known == {"stays"}
        assert stage.admission.node_of(f"Bearer {stays.credential}", "192.0.2.1") == "stays"
        with pytest.raises(HttpError):
            stage.admission.node_of(f"Bearer {goes.credential}", "192.0.2.1")

    play(tmp_path, story)


def test_a_node_that_enrols_while_the_records_are_read_stays_known(tmp_path: Path) -> None:
    async def story(stage: Stage) -> None:
        await stage.enrol("first")
        loop, late = asyncio.get_running_loop(), []

        def enrol_meanwhile() -> None:
            stage.enrolment.on_load = lambda: None
            late.append(asyncio.run_coroutine_threadsafe(stage.enrol("late"), loop).result(PATIENCE_SECONDS))

        stage.enrolment.on_load = enrol_meanwhile
        await stage.admission.watch()
        assert stage.admission.node_of(f"Bearer {late[0].credential}", "192.0.2.1") == "late"
        assert stage.known == {"first", "late"}
        await stage.admission.watch()
        assert stage.known == {"first", "late"}

    play(tmp_path, story)


class HastyEnrolment(CountingEnrolment):
    """Lets something happen between enrolling and saying so."""

    on_enrolled: Callable[[], None] = staticmethod(lambda: None)

    def enrol(
        self, *, token: str, name: str, now: float, credential: str | None = None, peer: str | None = None
    ) -> Enrolled:
        enrolled = super().enrol(token=token, name=name, now=now, credential=credential, peer=peer)
        self.on_enrolled()
        return enrolled


@pytest.mark.parametrize("is_read_first", [True, False])
def test_a_node_that_was_removed_before_its_enrolment_was_told_stays_out(
    tmp_path: Path, is_read_first: bool
) -> None:
    async def story(stage: Stage) -> None:
        loop = asyncio.get_running_loop()
        hasty = HastyEnrolment(stage.enrolment._records)
        stage.admission._enrolment = stage.enrolment = hasty
        told = asyncio.Event()
        reading: list[asyncio.Task[None]] = []

        def remove_and_read() -> None:
            hasty.remove("goes", now=1.0)
            if is_read_first:
                asyncio.run_coroutine_threadsafe(stage.admission.refresh(), loop).result(PATIENCE_SECONDS)
            else:
                asyncio.run_coroutine_threadsafe(begin_reading(), loop).result(PATIENCE_SECONDS)

        async def begin_reading() -> None:
            has_read = asyncio.Event()

            def wait() -> None:
                loop.call_soon_threadsafe(has_read.set)
                asyncio.run_coroutine_threadsafe(told.wait(), loop).result(PATIENCE_SECONDS)

            hasty.on_load = wait
            reading.append(loop.create_task(stage.admission.refresh()))
            await has_read.wait()

        hasty.on_enrolled = remove_and_read
        goes = await stage.enrol("goes")
        told.set()
        await asyncio.gather(*reading)
        assert stage.known == set()
        with pytest.raises(HttpError):
            stage.admission.node_of(f"Bearer {goes.credential}", "192.0.2.1")

    play(tmp_path, story)


def test_one_machine_cannot_guess_tokens_from_all_addresses_of_its_network(tmp_path: Path) -> None:
    async def story(stage: Stage) -> None:
        for number in range(20):
            with pytest.raises(Refused, match="invalid") as refused:
                await stage.admission.enrol(token="ghj_x", name="n", peer=f"2001:db8::{number:x}")
            assert refused.value.code != "too_many_attempts"
        with pytest.raises(Refused, match="wait a minute"):
            await stage.admission.enrol(token="ghj_x", name="n", peer="2001:db8::ffff")
        with pytest.raises(Refused, match="invalid"):
            await stage.admission.enrol(token="ghj_x", name="n", peer="2001:db8:0:1::1")

    play(tmp_path, story)


def test_the_log_says_who_enrolled_and_who_was_refused(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story(stage: Stage) -> None:
        await stage.enrol("gpu01")
        with pytest.raises(Refused):
            await stage.admission.enrol(token="ghj_secret", name="n", peer="192.0.2.2")
        for _ in range(100):
            with pytest.raises(HttpError):
                stage.admission.node_of("Bearer ghn_secret", "192.0.2.3")

    caplog.set_level(logging.INFO)
    play(tmp_path, story)
    told = [record.getMessage() for record in caplog.records if record.name == "gpuherd.api.admission"]
    assert told[0] == "node gpu01 enrolled from 192.0.2.1"
    assert told[1].startswith("enrolment refused from 192.0.2.2: ")
    assert told[2:] == ["node refused: unknown credential from 192.0.2.3"] * MAX_LINES
    assert "secret" not in caplog.text
