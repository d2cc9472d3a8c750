"""Links rest between rounds and wake up together; gates let only so many in."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from gpuherd.sources.ssh.gates import PER_SERVER, Gates
from gpuherd.sources.ssh.pacing import PacedLink, Pacer
from gpuherd.sources.ssh.way import SshWay


class Transport(asyncio.Transport):
    """Counts how often it is made to rest."""

    def __init__(self) -> None:
        super().__init__()
        self.is_paused = False
        self.is_gone = False
        self.rests = 0

    def is_closing(self) -> bool:
        return self.is_gone

    def is_reading(self) -> bool:
        return not self.is_paused

    def pause_reading(self) -> None:
        self.is_paused = True
        self.rests += 1

    def resume_reading(self) -> None:
        assert not self.is_gone
        self.is_paused = False


class TimedLoop(asyncio.SelectorEventLoop):
    """A loop whose clock the test moves."""

    now = 100.0

    def time(self) -> float:
        return self.now

    async def reach(self, moment: float) -> None:
        self.now = moment
        for _ in range(3):
            await asyncio.sleep(0)


def play(story: Any) -> None:
    loop = TimedLoop()
    try:
        loop.run_until_complete(story(loop))
    finally:
        loop.close()


def test_a_link_rests_until_its_next_round_is_due_and_stays_in_step() -> None:
    async def story(loop: TimedLoop) -> None:
        pacer, link = Pacer(2.0), PacedLink(transport := Transport())
        await loop.reach(100.1)
        pacer.rest(link)
        assert transport.is_paused
        await loop.reach(102.2)
        assert transport.is_paused
        await loop.reach(102.25)
        assert not transport.is_paused
        for number in range(1, 5):  # the round was there: the next rest ends exactly one interval later
            await loop.reach(102.25 + 2.0 * (number - 1) + 0.05)
            pacer.rest(link)
            await loop.reach(102.25 + 2.0 * number - 0.01)
            assert transport.is_paused
            await loop.reach(102.25 + 2.0 * number)
            assert not transport.is_paused

    play(story)


def test_links_of_about_the_same_time_wake_up_together() -> None:
    async def story(loop: TimedLoop) -> None:
        pacer = Pacer(5.0)
        transports = [Transport() for _ in range(10)]
        for number, transport in enumerate(transports):
            await loop.reach(100.01 + number * 0.015)
            pacer.rest(PacedLink(transport))
        await loop.reach(105.24)
        assert all(transport.is_paused for transport in transports)
        transports[3].is_gone = True
        await loop.reach(105.25)
        assert [transport.is_paused for transport in transports] == [n == 3 for n in range(10)]

    play(story)


@pytest.mark.parametrize("interval_seconds", [0.2, 60.0])
def test_very_short_and_long_intervals_are_not_paced(interval_seconds: float) -> None:
    async def story(loop: TimedLoop) -> None:
        Pacer(interval_seconds).rest(PacedLink(transport := Transport()))
        assert transport.rests == 0

    play(story)


def test_a_link_that_rests_already_is_left_alone() -> None:
    async def story(loop: TimedLoop) -> None:
        pacer, link = Pacer(5.0), PacedLink(transport := Transport())
        pacer.rest(link)
        pacer.rest(link)
        assert transport.rests == 1

    play(story)


def test_gates_bound_logins_in_all_and_per_server_and_stop_the_clock_of_who_waits() -> None:
    async def story(loop: TimedLoop) -> None:
        gates = Gates(6, lambda: 0.0)
        inside = most = 0

        async def log_in(address: tuple[str, int]) -> None:
            nonlocal inside, most
            async with asyncio.timeout(1.0) as deadline, gates.dialling(address, deadline):
                inside += 1
                most = max(most, inside)
                loop.now += 0.8  # as long as a slow login takes; those who wait must not be charged for it
                await asyncio.sleep(0)
                inside -= 1

        await asyncio.gather(*(log_in(("one", 22)) for _ in range(12)))
        assert most == PER_SERVER

    play(story)


def test_the_way_follows_its_settings(tmp_path: Any) -> None:
    from gpuherd.sources.settings import SshSettings

    async def story(loop: TimedLoop) -> None:
        def way(**settings: Any) -> SshWay:
            return SshWay(
                SshSettings(**settings),
                make_reader=lambda: None,  # type: ignore[arg-type, return-value]
                script=b"",
                accepted_keys_file=tmp_path / "accepted",
            )

        assert (way().way, way().interval_seconds, way().keepalive_seconds) == ("ssh", 5.0, 5.0)
        assert way(interval_seconds=1).keepalive_seconds == 5.0
        assert way(interval_seconds=600).keepalive_seconds == 20.0
        assert way(keepalive_seconds=2).keepalive_seconds == 2.0
        assert way(interval_seconds=600).patience_seconds == 1800.0
        assert way(interval_seconds=5, command_deadline_seconds=10).patience_seconds == 53.0

    play(story)
