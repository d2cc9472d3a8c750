"""Agent and hub over a real WebSocket: acks, resume, backfill in order, refusals."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import ssl
import subprocess
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path

import msgspec
import pytest

from gpuherd.agent.address import HubAddress
from gpuherd.agent.backoff import Backoff
from gpuherd.agent.enrol import Credentials
from gpuherd.agent.exchange import Reading
from gpuherd.agent.link import Link
from gpuherd.agent.loop import Agent
from gpuherd.agent.numbering import Entry, FrameKind
from gpuherd.agent.outbox import Outbox
from gpuherd.agent.settings import AgentSettings
from gpuherd.agent.spec import ProbeSpec
from gpuherd.agent.spool import RunFacts
from gpuherd.model.errors import Misconfigured
from gpuherd.wire.codec import encode
from gpuherd.wire.frames import FactsFrame, Notice, Pace, SampleFrame, TableFrame
from gpuherd.wire.matrix import LAYOUT
from support.agent_hub import TestHub
from support.running import PATIENCE_SECONDS, until

INTERVAL_SECONDS = 0.1
CREDENTIAL = "ghn_0123456789abcdef"


@pytest.fixture
def state_dir(tmp_path: Path) -> Path:
    folder = tmp_path / "state"
    folder.mkdir()
    (folder / "credential").write_text(CREDENTIAL + "\n")
    return folder


@asynccontextmanager
async def running(
    spec: ProbeSpec,
    hub: TestHub,
    state_dir: Path,
    monotonic: Callable[[], float] = time.monotonic,
    **settings: object,
) -> AsyncIterator[Agent]:
    """Run an agent that retries quickly."""
    agent = Agent(
        msgspec.convert(
            {"hub_url": hub.url, "interval_seconds": INTERVAL_SECONDS, **settings}, AgentSettings
        ),
        spec,
        state_dir=state_dir,
        backoff=Backoff(first_seconds=0.05, longest_seconds=0.2),
        monotonic=monotonic,
    )
    stop = asyncio.Event()
    task = asyncio.create_task(agent.run(stop))
    try:
        yield agent
    finally:
        stop.set()
        await asyncio.wait_for(task, PATIENCE_SECONDS)


@asynccontextmanager
async def absent_hub() -> AsyncIterator[TestHub]:
    """Give a hub that has an address but does not listen until it is started."""
    async with TestHub() as hub:
        await hub.stop()
        yield hub


def spooled(state_dir: Path) -> list[str]:
    return sorted(path.name for path in (state_dir / "spool").glob("*/*.seg"))


def run_id(agent: Agent) -> str:
    return agent.outbox.current.facts.boot_id


def test_frames_are_sent_acknowledged_and_forgotten(spec: ProbeSpec, state_dir: Path) -> None:
    async def main() -> None:
        async with TestHub() as hub, running(spec, hub, state_dir) as agent:
            await until(lambda: len(hub.samples()) >= 5, "five samples")
            assert hub.authorizations == [f"Bearer {CREDENTIAL}"]
            kinds = [type(frame) for _, frame in hub.arrived[:3]]
            assert kinds == [FactsFrame, TableFrame, SampleFrame]
            assert [frame.seq for _, frame in hub.arrived] == list(range(len(hub.arrived)))
            assert sum(isinstance(frame, FactsFrame | TableFrame) for _, frame in hub.arrived) == 2
            await until(lambda: agent.outbox.current.memory_bytes == 0, "all confirmed")
            (hello,) = hub.hellos
            assert hello.boot_id == run_id(agent)
            assert hello.interval_seconds == INTERVAL_SECONDS
            assert hello.dropped_frames == 0
        assert len(spooled(state_dir)) <= 1, "at most what was made while stopping"

    asyncio.run(main())


def test_a_slow_driver_makes_the_interval_longer_and_says_so(spec: ProbeSpec, state_dir: Path) -> None:
    async def main() -> None:
        clock = count(0.0, 10.0)  # asked before and after each reading, so that each seems to take 10 s
        async with TestHub() as hub, running(spec, hub, state_dir, lambda: next(clock)):
            await until(lambda: len(hub.samples()) >= 2, "two samples")
            first, second = hub.samples()[:2]
            assert first.interval_seconds == second.interval_seconds == pytest.approx(10.0)
            assert [problem.code for problem in first.problems] == []
            assert [(p.code, p.is_fault) for p in second.problems] == [("slow_driver", False)]

    asyncio.run(main())


def test_what_the_hub_missed_comes_in_order_when_it_is_back(spec: ProbeSpec, state_dir: Path) -> None:
    async def main() -> None:
        async with TestHub() as hub, running(spec, hub, state_dir) as agent:
            await until(lambda: len(hub.samples()) >= 2, "live samples")
            await hub.stop()
            seen = len(hub.arrived)
            made = agent.outbox.current.next_seq
            await until(
                lambda: agent.outbox.current.next_seq >= made + 8, "samples made while the hub is away"
            )
            assert spooled(state_dir), "they wait on disk"
            assert agent.outbox.current.memory_bytes == 0
            await hub.start()
            await until(lambda: len(hub.hellos) == 2, "a second hello")
            live_from = hub.hellos[1].live_from_seq
            assert live_from >= made + 8
            await until(lambda: hub.acked[run_id(agent)] >= live_from + 2, "live again")
            assert hub.missing(run_id(agent)) == []
            again = [frame.seq for _, frame in hub.arrived[seen:]]
            # First what the samples are about, though the hub has it; then everything else once and in order.
            assert again[:2] == [0, 1]
            assert again[2:] == list(range(again[2], again[2] + len(again) - 2))
            await until(lambda: not spooled(state_dir), "the spool is empty again")

    asyncio.run(main())


def test_connections_that_keep_breaking_lose_nothing(spec: ProbeSpec, state_dir: Path) -> None:
    async def main() -> None:
        async with TestHub() as hub, running(spec, hub, state_dir) as agent:
            for cut in range(1, 8):
                await until(lambda wanted=cut: len(hub.hellos) >= wanted, "a connection")  # type: ignore[misc]
                count = len(hub.arrived)
                await until(lambda wanted=count: len(hub.arrived) > wanted, "a frame")  # type: ignore[misc]
                hub.cut()
            await until(lambda: len(hub.hellos) >= 8, "the last connection")
            await until(lambda: hub.acked[run_id(agent)] >= hub.hellos[-1].live_from_seq, "live frames")
            assert hub.missing(run_id(agent)) == []
            assert {hello.boot_id for hello in hub.hellos} == {run_id(agent)}

    asyncio.run(main())


def test_unacknowledged_frames_are_sent_again(spec: ProbeSpec, state_dir: Path) -> None:
    async def main() -> None:
        async with TestHub() as hub:
            hub.acknowledges = False
            async with running(spec, hub, state_dir) as agent:
                await until(lambda: len(hub.arrived) >= 8, "frames that nobody confirms")
                boot_id = run_id(agent)
                assert agent.outbox.current.acked_seq == -1
                hub.acknowledges = True
                hub.cut()
                await until(lambda: len(hub.hellos) == 2, "a second hello")
                await until(lambda: hub.acked.get(boot_id, -1) >= hub.hellos[-1].live_from_seq, "acks")
                assert [frame.seq for _, frame in hub.arrived].count(3) == 2, "repeated"
                assert hub.missing(boot_id) == []

    asyncio.run(main())


def test_a_hub_that_lost_its_memory_gets_what_is_left(spec: ProbeSpec, state_dir: Path) -> None:
    async def main() -> None:
        async with TestHub() as hub, running(spec, hub, state_dir) as agent:
            await until(lambda: len(hub.samples()) >= 3, "samples")
            hub.forgets = True
            before = len(hub.arrived)
            hub.cut()
            await until(lambda: len(hub.arrived) > before + 3, "samples again")
            first = [type(frame) for _, frame in hub.arrived[before : before + 3]]
            assert first == [FactsFrame, TableFrame, SampleFrame], "never a sample that cannot be understood"
            assert hub.missing(run_id(agent)) == []

    asyncio.run(main())


async def leave_runs(spec: ProbeSpec, hub: TestHub, state_dir: Path, count: int) -> list[str]:
    """Let agents come and go while the hub is away; gives their runs."""
    boot_ids = []
    for _ in range(count):
        async with running(spec, hub, state_dir) as agent:
            boot_ids.append(run_id(agent))
            await until(lambda: agent.outbox.current.next_seq >= 6, "samples without a hub")
    assert len(list((state_dir / "spool").iterdir())) == count
    return boot_ids


def test_runs_of_earlier_agents_come_beside_what_is_live(spec: ProbeSpec, state_dir: Path) -> None:
    async def main() -> None:
        async with absent_hub() as hub:
            boot_ids = await leave_runs(spec, hub, state_dir, 2)
            await hub.start()
            async with running(spec, hub, state_dir) as agent:
                current = run_id(agent)
                await until(lambda: agent.outbox.older_run() is None, "the old ones are done")
                await until(lambda: len(hub.samples(current)) >= 5, "the current run")
                assert [hello.boot_id for hello in hub.hellos] == [current]
                assert [hello.boot_id for hello in hub.past_hellos] == boot_ids
                assert all(hub.missing(boot_id) == [] for boot_id in (*boot_ids, current))
                numbers = [(boot_id, frame.seq) for boot_id, frame in hub.arrived]
                assert len(set(numbers)) == len(numbers), "each once"
        assert len(list((state_dir / "spool").iterdir())) <= 1, "at most what was made while stopping"

    asyncio.run(main())


def test_a_hub_of_the_first_minor_version_gets_one_run_after_the_other(
    spec: ProbeSpec, state_dir: Path
) -> None:
    async def main() -> None:
        async with absent_hub() as hub:
            hub.protocol_minor = 0
            boot_ids = await leave_runs(spec, hub, state_dir, 2)
            await hub.start()
            async with running(spec, hub, state_dir) as agent:
                current = run_id(agent)
                await until(lambda: len(hub.samples(current)) >= 5, "the current run")
                assert [hello.boot_id for hello in hub.hellos] == [current, *boot_ids, current]
                for old in boot_ids:
                    assert hub.missing(old) == []
                    hello = next(hello for hello in hub.hellos if hello.boot_id == old)
                    assert hello.live_from_seq > max(hub.kept[old]), "nothing of it is live"
                order = [boot_id for boot_id, _ in hub.arrived]
                assert order == sorted(order, key=[*boot_ids, current].index)
                assert hub.missing(current) == []
                assert agent.outbox.older_run() is None

    asyncio.run(main())


def test_a_long_backlog_is_set_aside_and_what_is_live_goes_first(
    spec: ProbeSpec, state_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpuherd.agent.talk.SHORT_BACKLOG_FRAMES", 6)
    monkeypatch.setattr("gpuherd.agent.backlog.BATCH_FRAMES", 3)

    async def main() -> None:
        async with TestHub() as hub, running(spec, hub, state_dir) as agent:
            before = run_id(agent)
            await until(lambda: len(hub.samples()) >= 2, "live samples")
            await hub.stop()
            seen, made = len(hub.arrived), agent.outbox.current.next_seq
            await until(lambda: agent.outbox.current.next_seq >= made + 12, "a backlog")
            await hub.start()
            await until(lambda: run_id(agent) != before, "a new run")
            after = run_id(agent)
            await until(lambda: agent.outbox.older_run() is None, "the backlog is through")
            await until(lambda: len(hub.samples(after)) >= 5, "live samples")
            assert [hello.boot_id for hello in hub.hellos] == [before, before, after]
            assert [hello.boot_id for hello in hub.past_hellos] == [before]
            order = [boot_id for boot_id, _ in hub.arrived[seen:]]
            last_past = len(order) - 1 - order[::-1].index(before)
            assert after in order[: last_past - 3], "live frames came between the batches"
            live = [frame for boot_id, frame in hub.arrived if boot_id == after]
            assert [type(frame) for frame in live[:3]] == [FactsFrame, TableFrame, SampleFrame]
            assert hub.missing(before) == hub.missing(after) == []
            again = [frame.seq for boot_id, frame in hub.arrived[seen:] if boot_id == before]
            assert again[:2] == [0, 1], "what the samples are about"
            assert again[2:] == list(range(again[2], again[2] + len(again) - 2)), "each once, in order"
            await until(lambda: not spooled(state_dir), "the spool is empty again")

    asyncio.run(main())


def test_a_backlog_that_cannot_be_saved_does_not_stop_what_is_live(spec: ProbeSpec, state_dir: Path) -> None:
    async def main() -> None:
        async with absent_hub() as hub:
            (old,) = await leave_runs(spec, hub, state_dir, 1)
            await hub.start()
            hub.acknowledges = False
            async with running(spec, hub, state_dir) as agent:
                current = run_id(agent)
                await until(lambda: len(hub.samples(current)) >= 8, "live samples")
                assert agent.outbox.older_run() is not None, "kept until it is saved"
                hub.acknowledges = True
                hub.cut()
                await until(lambda: agent.outbox.older_run() is None, "the old run is saved")
                assert hub.missing(old) == hub.missing(current) == []

    asyncio.run(main())


def test_a_slow_agent_reads_at_once_when_the_hub_is_there(spec: ProbeSpec, state_dir: Path) -> None:
    async def main() -> None:
        async with absent_hub() as hub, running(spec, hub, state_dir, interval_seconds=3600) as agent:
            await until(lambda: agent.outbox.current.next_seq >= 3, "a first reading")
            await hub.start()
            await until(lambda: bool(hub.hellos), "hello")
            live_from = hub.hellos[0].live_from_seq
            await until(lambda: any(s.seq >= live_from for s in hub.samples()), "a live sample")

    asyncio.run(main())


def test_a_small_spool_drops_the_oldest_and_says_how_many(
    spec: ProbeSpec, state_dir: Path, fault: Callable[..., None]
) -> None:
    async def main() -> None:
        fault(gpus=32)  # 5 kB a sample
        async with (
            absent_hub() as hub,
            running(spec, hub, state_dir, spool_max_bytes=40_000, interval_seconds=0.1) as agent,
        ):
            await until(lambda: agent.outbox.current.next_seq >= 25, "more than fits")
            dropped = agent.outbox.current.facts.dropped_frames
            assert dropped > 0
            size = sum(path.stat().st_size for path in (state_dir / "spool").glob("*/*.seg"))
            assert size < 40_000 + 3 * 9_000
            await hub.start()
            await until(lambda: bool(hub.hellos), "hello")
            (hello,) = hub.hellos
            assert hello.dropped_frames >= dropped
            await until(lambda: hub.acked.get(run_id(agent), -1) >= hello.live_from_seq, "live")
            kinds = [type(frame) for _, frame in hub.arrived[:2]]
            assert kinds == [FactsFrame, TableFrame], "though their place in the spool was dropped"
            kept = hub.kept[run_id(agent)]
            lost = len(hub.missing(run_id(agent))) + 2  # those two came as context only
            # More may have been dropped after the hello, some of them when they were on their way already.
            assert hello.dropped_frames <= lost <= agent.outbox.current.facts.dropped_frames
            assert max(kept) >= hello.live_from_seq

    asyncio.run(main())


def test_an_unwritable_spool_keeps_frames_in_memory(
    spec: ProbeSpec, state_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        (state_dir / "spool").write_text("in the way")  # works for root too, unlike permissions
        async with absent_hub() as hub, running(spec, hub, state_dir) as agent:
            await until(lambda: agent.outbox.current.next_seq >= 8, "samples without a hub or disk")
            assert agent.outbox.current.memory_bytes > 0
            await hub.start()
            await until(lambda: len(hub.samples()) >= 10, "backfill from memory")
            assert hub.missing(run_id(agent)) == []

    with caplog.at_level(logging.WARNING):
        asyncio.run(main())
    assert sum("cannot write to the spool" in record.message for record in caplog.records) == 1


@pytest.mark.parametrize("status", [401, 403])
def test_an_unknown_credential_is_explained_and_retried_slowly(
    spec: ProbeSpec, state_dir: Path, caplog: pytest.LogCaptureFixture, status: int
) -> None:
    async def main() -> None:
        async with TestHub() as hub:
            hub.refuse_with = status
            async with running(spec, hub, state_dir):
                await until(lambda: len(hub.authorizations) >= 3, "tries")
                hub.refuse_with = None
                await until(lambda: len(hub.samples()) >= 3, "reports once the hub knows the node")
                (boot_id,) = hub.kept
                assert hub.missing(boot_id) == []

    with caplog.at_level(logging.INFO):
        asyncio.run(main())
    said = [record for record in caplog.records if "does not know this node's credential" in record.message]
    assert len(said) == 1, "once, not at every try"
    assert "gpuherd token create" in said[0].message
    assert CREDENTIAL not in caplog.text


def test_notices_are_logged_and_a_final_one_ends_the_session(
    spec: ProbeSpec, state_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with TestHub() as hub, running(spec, hub, state_dir):
            hub.notices = [Notice(code="clock_skewed", message="your clock is\nwrong")]
            await until(lambda: len(hub.samples()) >= 2, "samples in spite of a notice")
            hub.notices = [Notice(code="node_disabled", message="this node is disabled", is_final=True)]
            hub.cut()
            await until(lambda: len(hub.hellos) >= 3, "the agent tries again")

    with caplog.at_level(logging.INFO):
        asyncio.run(main())
    assert "your clock is\N{REPLACEMENT CHARACTER}wrong (clock_skewed)" in caplog.text
    assert "this node is disabled (node_disabled)" in caplog.text


def test_a_bug_in_the_loop_is_logged_and_the_loop_starts_again(
    spec: ProbeSpec, state_dir: Path, fault: Callable[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    """The reading that brought new facts is lost on the way; the node must not be misread for ever after."""

    async def main() -> None:
        async with TestHub() as hub, running(spec, hub, state_dir) as agent:
            await until(lambda: len(hub.samples()) >= 2, "samples")
            real = agent._numbering.entries

            def broken(reading: Reading) -> list[Entry]:
                if reading.facts is None:
                    return real(reading)
                agent._numbering.entries = real  # type: ignore[method-assign]
                raise ZeroDivisionError("a bug")

            agent._numbering.entries = broken  # type: ignore[method-assign]
            fault(gpus=5)
            await until(lambda: sum(isinstance(f, FactsFrame) for _, f in hub.arrived) == 2, "the new facts")
            await until(lambda: hub.acked[run_id(agent)] == agent.outbox.current.next_seq - 1, "all of it")
            facts = [frame for _, frame in hub.arrived if isinstance(frame, FactsFrame)][-1]
            assert len(facts.facts.devices) == 5
            assert len(hub.samples()[-1].devices) == len(hub.hellos[0].layout.devices) * 8 * 5

    with caplog.at_level(logging.INFO):
        asyncio.run(main())
    assert "collecting failed and restarts" in caplog.text


def test_the_hub_sets_the_pace_within_bounds(spec: ProbeSpec, state_dir: Path) -> None:
    async def main() -> None:
        async with TestHub() as hub:
            hub.interval_seconds = 0.0
            async with running(spec, hub, state_dir, interval_seconds=3600) as agent:
                await until(lambda: len(hub.samples()) >= 4, "samples at the hub's pace, not once an hour")
                assert agent.outbox.current.facts.interval_seconds == 0.1, "the shortest there is"

    asyncio.run(main())


@pytest.mark.promise("overload-asks-for-less")
def test_an_overloaded_hub_is_sent_less_until_it_says_otherwise_or_is_gone(
    spec: ProbeSpec, state_dir: Path
) -> None:
    async def main() -> None:
        async with TestHub() as hub, running(spec, hub, state_dir) as agent:

            async def ask(interval_seconds: float | None) -> None:
                for connection in hub.connections:
                    await connection.send(encode(Pace(interval_seconds=interval_seconds)))

            async def reports_as_usual() -> None:
                await until(lambda: agent.interval_seconds == INTERVAL_SECONDS, "the usual pace")
                seen = len(hub.samples())
                await until(
                    lambda: len(hub.samples()) > seen + 2, "samples at the usual pace, not in an hour"
                )

            await reports_as_usual()
            await ask(3600)
            await until(lambda: agent.interval_seconds == 3600, "the pace it was asked for")
            assert agent.outbox.current.facts.interval_seconds == INTERVAL_SECONDS, (
                "what it says in its hello"
            )
            await ask(None)
            await reports_as_usual()
            await ask(INTERVAL_SECONDS / 2)
            await ask(3600)
            await until(lambda: agent.interval_seconds == 3600, "never a shorter one than its own")
            hub.cut()
            await reports_as_usual()

    asyncio.run(main())


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for 127.0.0.1, signed by itself, with its key in the same file."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed: no certificate can be made")
    folder = tmp_path_factory.mktemp("tls")
    making = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=hub"
    subprocess.run(
        [*making.split(), "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", "key.pem", "-out", "cert.pem"],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    return folder


def test_an_https_hub_is_verified(
    spec: ProbeSpec, state_dir: Path, certificate: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")
        async with TestHub(tls) as hub:
            async with running(spec, hub, state_dir):
                await until(lambda: "agent.tls_ca_file" in caplog.text, "the way to trust the hub")
                assert hub.authorizations == [], "the credential is not shown to a stranger"
            async with running(spec, hub, state_dir, tls_ca_file=str(certificate / "cert.pem")):
                await until(lambda: len(hub.samples()) >= 3, "samples over TLS")

    with caplog.at_level(logging.INFO):
        asyncio.run(main())


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_a_bad_certificate_file_stops_the_start(
    spec: ProbeSpec, state_dir: Path, tmp_path: Path, content: str | None
) -> None:
    file = tmp_path / "ca.pem"
    if content is not None:
        file.write_text(content)
    settings = AgentSettings(hub_url="https://gpus.example.org", tls_ca_file=str(file))
    with pytest.raises(Misconfigured, match=r"agent\.tls_ca_file"):
        Agent(settings, spec, state_dir=state_dir)


def test_nothing_is_left_running(spec: ProbeSpec, state_dir: Path) -> None:
    async def main() -> tuple[int, ...]:
        async with TestHub() as hub, running(spec, hub, state_dir) as agent:
            await until(lambda: len(hub.samples()) >= 2, "samples")
            return agent.watch.probe_pids

    before = set(Path("/proc/self/fd").iterdir())
    pids = asyncio.run(main())
    assert pids
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    assert set(Path("/proc/self/fd").iterdir()) == before


def test_a_hub_that_is_there_but_dead_is_dialled_again(
    spec: ProbeSpec, state_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its machine keeps the connection, nobody reads it: no pong, so no link."""
    monkeypatch.setattr("gpuherd.agent.link.PING_SECONDS", 0.2)

    async def main() -> None:
        async with TestHub() as hub, running(spec, hub, state_dir) as agent:
            await until(lambda: len(hub.samples()) >= 2, "samples")
            (frozen,) = hub.connections
            frozen.transport.pause_reading()
            await until(lambda: len(hub.hellos) == 2, "another connection")
            await until(lambda: hub.acked[run_id(agent)] >= hub.hellos[-1].live_from_seq, "live again")
            assert hub.missing(run_id(agent)) == []

    asyncio.run(main())


def test_what_the_hub_has_but_cannot_save_is_kept_and_not_repeated(tmp_path: Path) -> None:
    facts = RunFacts(boot_id="run", layout=LAYOUT, interval_seconds=1.0)
    outbox = Outbox(tmp_path / "spool", 2**20, facts)

    def put(seq: int) -> None:
        frame = SampleFrame(seq=seq, time=1.0, facts_revision=1, table_revision=1, host=b"")
        outbox.current.put([Entry(seq, FrameKind.SAMPLE, encode(frame))])

    async def main() -> None:
        async with TestHub() as hub:
            hub.acknowledges, hub.tells_received = False, True
            (tmp_path / "credential").write_text(CREDENTIAL)
            address = HubAddress.parse(hub.url)
            credentials = Credentials(address, credential_file=tmp_path / "credential")
            backoff = Backoff(first_seconds=0.01, longest_seconds=0.05)
            link = Link(address, credentials, outbox, backoff=backoff)
            task = asyncio.create_task(link.run())
            try:
                for seq in range(35):
                    put(seq)
                await until(lambda: 34 in hub.kept.get("run", ()), "the newest frame")
                assert outbox.current.acked_seq == -1
                hub.cut()
                await until(lambda: len(hub.hellos) == 2, "a second hello")
                put(35)
                await until(lambda: 35 in hub.kept["run"], "a live frame")
                assert [frame.seq for _, frame in hub.arrived] == list(range(36))
                hub.tells_received, hub.acknowledges = False, True
                hub.cut()  # a new hub that has nothing: all that was not acknowledged comes again
                hub.arrived.clear()
                await until(lambda: outbox.current.acked_seq == 35, "every ack")
                assert sorted({frame.seq for _, frame in hub.arrived}) == list(range(36))
            finally:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    asyncio.run(main())
