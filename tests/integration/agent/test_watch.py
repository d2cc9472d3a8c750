"""Drivers that hang, crash and come back, with real processes."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable

import pytest

from gpuherd.agent.exchange import Reading
from gpuherd.agent.probe_process import Probe, signal_group
from gpuherd.agent.quarantine import FIRST_RETRY_SECONDS
from gpuherd.agent.spec import ProbeSpec
from gpuherd.agent.watch import FRESH_START_SECONDS, ProbeWatch
from gpuherd.model.errors import Misconfigured
from support.running import PATIENCE_SECONDS
from support.tiny_node import uuid_of
from support.watched_node import DEADLINE_SECONDS, Node, is_alive, node_of, problem, temperatures

ALL_WELL = {uuid_of(0): 40.0, uuid_of(1): 41.0, uuid_of(2): 42.0}


def test_a_healthy_node_is_read_by_one_probe(spec: ProbeSpec) -> None:
    async def main() -> None:
        async with node_of(spec) as node:
            first = await node.report()
            pids = node.watch.probe_pids
            second = await node.report()
            assert temperatures(first) == temperatures(second) == ALL_WELL
            assert node.watch.probe_pids == pids
            assert len(pids) == 1
            assert second.sample.time > first.sample.time

    asyncio.run(main())


@pytest.mark.parametrize(
    ("kind", "code"), [("hang", "driver_hung"), ("crash", "driver_crashed"), ("exit", "driver_crashed")]
)
def test_a_bad_gpu_is_left_alone_and_the_others_stay_live(
    spec: ProbeSpec, fault: Callable[..., None], kind: str, code: str
) -> None:
    async def main() -> None:
        async with node_of(spec) as node:
            before = await node.report()
            fault(faults={"1": kind})
            others = {uuid_of(0): 40.0, uuid_of(1): None, uuid_of(2): 42.0}
            report = await node.report_when(lambda report: temperatures(report) == others)
            found = problem(report, code)
            assert found is not None
            assert found.device_uuid == uuid_of(1)
            assert found.is_fault
            assert "tinyGetTemperature" in found.message
            assert found.since is not None
            assert before.sample.time <= found.since <= time.time()
            # The processes of the healthy GPUs still point at the right rows.
            assert [(use.device, report.table.processes[use.process].pid) for use in report.table.uses] == [
                (0, 1000),
                (2, 1002),
            ]
            again = await node.report()
            assert problem(again, code) == found  # the same since, and no further losses
            assert len(node.watch.probe_pids) == 1

    asyncio.run(main())


def test_a_gpu_that_answers_again_is_taken_back(spec: ProbeSpec, fault: Callable[..., None]) -> None:
    async def main() -> None:
        async with node_of(spec) as node:
            await node.report()
            fault(faults={"2": "hang"})
            assert temperatures(await node.report())[uuid_of(2)] is None
            fault()
            assert temperatures(await node.report())[uuid_of(2)] is None, "not before its time"
            node.clock.ahead += 31.0
            report = await node.report_when(lambda report: temperatures(report) == ALL_WELL)
            assert report.sample.problems == ()
            assert not node.watch.quarantine

    asyncio.run(main())


def test_a_probe_that_takes_over_is_asked_again(
    spec: ProbeSpec, fault: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its first answer may be older than what was sent since: a counter would seem to have gone back."""

    async def main() -> None:
        answered, may_be_taken = asyncio.Event(), asyncio.Event()
        try_it = ProbeWatch._try

        async def held_back(watch: ProbeWatch, trial: Probe) -> Reading:
            reading = await try_it(watch, trial)
            answered.set()
            await may_be_taken.wait()
            return reading

        async with node_of(spec) as node:
            await node.report()
            fault(faults={"2": "hang"})
            await node.report()
            fault()
            monkeypatch.setattr(ProbeWatch, "_try", held_back)
            node.clock.ahead += 31.0
            await node.report()
            await asyncio.wait_for(answered.wait(), PATIENCE_SECONDS)
            newest = await node.report()
            may_be_taken.set()
            report = await node.report_when(lambda report: temperatures(report) == ALL_WELL)
            assert report.sample.time > newest.sample.time
            assert [use.device for use in report.table.uses] == [0, 1, 2], (
                "what came with its first answer counts"
            )

    asyncio.run(main())


def test_trying_a_hung_gpu_again_does_not_disturb_the_others(
    spec: ProbeSpec, fault: Callable[..., None]
) -> None:
    async def main() -> None:
        async with node_of(spec) as node:
            await node.report()
            fault(faults={"0": "hang"})
            await node.report()
            (live,) = node.watch.probe_pids
            node.clock.ahead += 31.0
            (ban,) = node.watch.quarantine
            until = time.monotonic() + PATIENCE_SECONDS
            took: list[float] = []
            while next(iter(node.watch.quarantine)) == ban:
                started = time.monotonic()
                report = await node.report()
                took.append(time.monotonic() - started)
                assert temperatures(report)[uuid_of(1)] == 41.0
                assert len(node.watch.probe_pids) <= 2
                assert time.monotonic() < until
                await asyncio.sleep(0.02)
            assert min(took) < DEADLINE_SECONDS, "the live probe waits for nobody"
            (longer,) = node.watch.quarantine
            assert longer.since == ban.since
            assert FIRST_RETRY_SECONDS < longer.retry_at - node.clock() <= 2 * FIRST_RETRY_SECONDS, (
                "the next try is later than the first was"
            )
            assert node.watch.probe_pids == (live,)

    asyncio.run(main())


def test_a_driver_that_hangs_while_opening_leaves_the_host_visible(
    spec: ProbeSpec, fault: Callable[..., None]
) -> None:
    async def main() -> None:
        async with node_of(spec) as node:
            await node.report()
            fault(faults={"-1": "hang", "1": "crash"})  # the crash forces a new start, which hangs
            report = await node.report_when(lambda report: problem(report, "driver_hung") is not None)
            whole = problem(report, "driver_hung")
            assert whole is not None
            assert whole.device_uuid is None
            assert whole.is_fault
            assert report.sample.host.cpu_ratio == 0.5, "the host is still read"
            assert temperatures(report) == dict.fromkeys(ALL_WELL), (
                "the GPUs are listed, nothing is known of them"
            )
            assert len(node.watch.probe_pids) == 1
            fault()
            node.clock.ahead += 31.0
            healed = await node.report_when(lambda report: temperatures(report) == ALL_WELL)
            assert healed.sample.problems == ()

    asyncio.run(main())


def test_a_driver_that_hangs_from_the_first_moment(spec: ProbeSpec, fault: Callable[..., None]) -> None:
    async def main() -> None:
        fault(faults={"-1": "hang"})
        async with node_of(spec) as node:
            report = await node.report()
            assert problem(report, "driver_hung") is not None
            assert report.sample.host.cpu_ratio == 0.5

    asyncio.run(main())


def test_gpus_known_from_the_last_run_stay_listed(spec: ProbeSpec, fault: Callable[..., None]) -> None:
    async def main() -> None:
        async with node_of(spec) as node:
            devices = (await node.report()).facts.devices
        fault(faults={"-1": "hang"})
        async with node_of(spec, devices=devices) as node:
            assert temperatures(await node.report()) == dict.fromkeys(ALL_WELL)
        fault(gpus=0, problem="driver_mismatch")
        async with node_of(spec, devices=devices) as node:
            report = await node.report()
            assert temperatures(report) == dict.fromkeys(ALL_WELL)
            assert problem(report, "driver_mismatch") is not None

    asyncio.run(main())


def test_when_one_gpu_after_the_other_hangs_it_is_the_driver(
    spec: ProbeSpec, fault: Callable[..., None]
) -> None:
    async def main() -> None:
        async with node_of(spec) as node:
            fault(gpus=8)
            await node.report()
            fault(gpus=8, faults={str(index): "hang" for index in range(8)})
            report = await node.report_when(
                lambda report: any(
                    found.code == "driver_hung" and found.device_uuid is None
                    for found in report.sample.problems
                )
            )
            assert set(temperatures(report).values()) == {None}
            assert len(report.facts.devices) == 8

    asyncio.run(main())


def test_an_unkillable_probe_is_abandoned_and_no_other_touches_the_driver(
    spec: ProbeSpec, fault: Callable[..., None]
) -> None:
    """Stuck in the kernel, told by a kill that does nothing: D state cannot be had on demand."""

    async def main() -> None:
        immortal: set[int] = set()

        def kill_group(group: int, number: int) -> None:
            if group not in immortal:
                signal_group(group, number)

        async with node_of(spec, kill_group=kill_group) as node:
            await node.report()
            (stuck,) = node.watch.probe_pids
            immortal.add(stuck)
            fault(faults={"1": "hang"})
            report = await node.report()
            whole = [p for p in report.sample.problems if p.device_uuid is None]
            assert whole[0].code == "driver_hung"
            assert whole[0].is_fault
            assert str(stuck) in whole[0].message
            assert report.sample.host.cpu_ratio == 0.5
            assert set(temperatures(report).values()) == {None}
            pids = set(node.watch.probe_pids)
            assert len(pids) == 2
            for _ in range(3):
                node.clock.ahead += 700.0
                await node.report()
                assert set(node.watch.probe_pids) == pids, "nothing piles up"
            fault()
            immortal.clear()
            os.kill(stuck, signal.SIGKILL)
            healed = await node.report_when(lambda report: temperatures(report) == ALL_WELL)
            assert healed.sample.problems == ()

    asyncio.run(main())


def test_a_fresh_probe_gets_over_a_library_mismatch(spec: ProbeSpec, fault: Callable[..., None]) -> None:
    async def main() -> None:
        fault(problem="driver_mismatch")
        async with node_of(spec) as node:
            await node.report()
            first = node.watch.probe_pids
            node.clock.ahead += FRESH_START_SECONDS + 1
            until = time.monotonic() + PATIENCE_SECONDS
            seen: set[int] = set()
            while len(seen) < 2:  # one was tried, found no better and put away
                await node.report()
                seen |= set(node.watch.probe_pids)
                assert time.monotonic() < until
                await asyncio.sleep(0.02)
            while len(node.watch.probe_pids) > 1:
                await node.report()
                assert time.monotonic() < until
                await asyncio.sleep(0.02)
            assert node.watch.probe_pids == first
            fault()
            assert problem(await node.report(), "driver_mismatch") is not None, "this process cannot recover"
            node.clock.ahead += FRESH_START_SECONDS + 1
            report = await node.report_when(lambda report: problem(report, "driver_mismatch") is None)
            assert temperatures(report) == ALL_WELL
            assert node.watch.probe_pids != first

    asyncio.run(main())


def test_a_probe_that_somebody_killed_is_replaced_without_blame(spec: ProbeSpec) -> None:
    async def main() -> None:
        async with node_of(spec) as node:
            await node.report()
            (pid,) = node.watch.probe_pids
            os.kill(pid, signal.SIGKILL)
            report = await node.report()
            assert temperatures(report) == ALL_WELL
            assert report.sample.problems == ()
            assert not node.watch.quarantine

    asyncio.run(main())


def test_probes_that_keep_dying_are_started_ever_more_seldom(
    spec: ProbeSpec, fault: Callable[..., None]
) -> None:
    async def main() -> None:
        fault(faults={"host": "exit"})
        node = Node(spec)
        for _ in range(40):
            assert await node.watch.read() is None
            node.clock.ahead += 1.0
        assert node.watch.trouble is not None
        assert 4 < node.watch._ends_in_a_row < 10, "about the logarithm of the seconds that passed"
        await node.watch.stop()

    asyncio.run(main())


@pytest.mark.parametrize("kind", ["fail", "bug"])
def test_a_reader_that_fails_says_why_and_is_asked_again(
    spec: ProbeSpec, fault: Callable[..., None], kind: str
) -> None:
    async def main() -> None:
        async with node_of(spec) as node:
            await node.report()
            pids = node.watch.probe_pids
            fault(faults={"host": kind})
            assert await node.watch.read() is None
            assert node.watch.trouble in ("the script says so", "ZeroDivisionError: a bug")
            fault()
            assert temperatures(await node.report()) == ALL_WELL
            assert node.watch.probe_pids == pids

    asyncio.run(main())


def test_gpus_that_cannot_be_read_from_the_start_leave_the_host_visible(
    spec: ProbeSpec, fault: Callable[..., None]
) -> None:
    async def main() -> None:
        fault(faults={"1": "bug"})
        async with node_of(spec) as node:
            report = await node.report()
            found = problem(report, "driver_failed")
            assert found is not None
            assert found.is_fault
            assert "ZeroDivisionError: a bug" in found.message
            assert report.sample.host.cpu_ratio == 0.5
            fault()
            node.clock.ahead += FRESH_START_SECONDS + 1
            await node.report_when(lambda report: temperatures(report) == ALL_WELL)

    asyncio.run(main())


def test_slow_is_not_hung(spec: ProbeSpec, fault: Callable[..., None]) -> None:
    """Each call moves on, all of them together take longer than the deadline."""

    async def main() -> None:
        fault(gpus=5, faults={str(index): "slow" for index in range(5)})
        async with node_of(spec) as node:
            started = time.monotonic()
            report = await node.report()
            assert time.monotonic() - started > DEADLINE_SECONDS
            assert report.sample.problems == ()
            assert None not in temperatures(report).values()

    asyncio.run(main())


def test_a_collector_that_cannot_be_loaded_stops_the_start() -> None:
    async def main() -> None:
        watch = ProbeWatch(ProbeSpec(node="gpuherd.nowhere:Nothing"), deadline_seconds=DEADLINE_SECONDS)
        try:
            with pytest.raises(Misconfigured, match=r"gpuherd\.nowhere:Nothing"):
                await watch.read()
        finally:
            await watch.stop()

    asyncio.run(main())


def test_probes_die_with_the_agent(spec: ProbeSpec, fault: Callable[..., None]) -> None:
    """Also one that hangs: the kernel ends it when its parent is killed."""
    import subprocess
    import sys

    import msgspec

    fault(faults={"0": "hang"})
    code = (
        "import asyncio, sys, msgspec\n"
        "from gpuherd.agent.spec import ProbeSpec\n"
        "from gpuherd.agent.watch import ProbeWatch\n"
        "async def main():\n"
        "    spec = msgspec.json.decode(sys.argv[1], type=ProbeSpec)\n"
        "    watch = ProbeWatch(spec, deadline_seconds=60)\n"
        "    task = asyncio.create_task(watch.read())\n"
        "    await asyncio.sleep(0.1)\n"
        "    print(*watch.probe_pids, flush=True)\n"
        "    await task\n"
        "asyncio.run(main())\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", code, msgspec.json.encode(spec).decode()], stdout=subprocess.PIPE
    )
    with parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        parent.kill()
    until = time.monotonic() + PATIENCE_SECONDS
    while is_alive(pid):
        assert time.monotonic() < until
        time.sleep(0.01)
