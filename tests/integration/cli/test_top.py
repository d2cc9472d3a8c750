"""gpuherd top against a real hub: its stream tells what /fleet tells, and on a real terminal all of it can be seen."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

import pytest
from msgspec import structs

from gpuherd.client import HubClient, HubLine, HubRefused
from gpuherd.client.herd_views import Herd
from gpuherd.client.line import HubUrl
from gpuherd.client.live import Condition, HerdFeed, News, Shut
from gpuherd.client.live_herd import LiveHerd
from gpuherd.client.live_messages import HerdChange, OwnProcesses
from gpuherd.model.reports import Problem, Report
from support.booking_hub import booking_hub, report_of
from support.full_terminal import FullTerminal
from support.herd import HOLDING, WORKING, gpu
from support.hub import eventually, running_hub
from support.hub_process import HubProcess
from support.running import PATIENCE_SECONDS

EVIL = "\x1b[2J[red]\u202eevil"


def client(url: str, token: str | None = None) -> HubClient:
    return HubClient(HubLine(HubUrl.parse(url), token=token))


def reported(load: float = 0.9) -> Report:
    report = report_of(gpu(0), gpu(1), gpu(2, name=f"NVIDIA {EVIL}"), users={0: "ada", 1: "bob", 2: EVIL})
    broken = Problem(code="gpu_lost", message="GPU is lost: reset it", device_uuid="GPU-1", is_fault=True)
    working = structs.replace(WORKING, utilization_gpu=load)
    sample = structs.replace(report.sample, devices=(working, HOLDING, HOLDING), problems=(broken,))
    return structs.replace(report, sample=sample)


class Follower:
    """Takes what a feed brings, as the screen does."""

    def __init__(self, feed: HerdFeed) -> None:
        self.feed = feed
        self.herd = LiveHerd()
        self.conditions: list[Condition] = []
        self.error: Shut | None = None
        self._came = threading.Event()
        feed.start(self._came.set)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.feed.stop)

    def take(self) -> None:
        for news in self.feed.take():
            self._take(news)

    def _take(self, news: News) -> None:
        match news:
            case HerdChange():
                assert self.herd.apply(news)
            case OwnProcesses():
                self.herd.apply_own(news)
            case Condition():
                self.conditions.append(news)
            case Shut():
                self.error = news

    async def until(self, is_so: Callable[[], Any]) -> None:
        def look() -> Any:
            self.take()
            return is_so()

        await eventually(look)

    @property
    def phase(self) -> str:
        return self.conditions[-1].phase if self.conditions else ""


def told(herd: Herd) -> dict[tuple[str, str], Any]:
    """What /fleet tells, as far as the stream tells it: whole percents and mebibytes."""
    return {
        (node.id, device.uuid): (
            node.name,
            node.state,
            device.state,
            pytest.approx(device.availability.since, abs=1.0),
            None if device.sample.utilization_gpu is None else round(device.sample.utilization_gpu, 2),
            None
            if device.sample.memory_used_bytes is None
            else round(device.sample.memory_used_bytes / 2**20),
            device.sample.temperature_celsius,
            device.users,
            tuple((use.pid, use.user, use.gpu_memory_bytes) for use in device.processes),
            tuple((booking.id, booking.holder, booking.phase) for booking in device.bookings),
        )
        for node in herd.nodes
        for device in node.devices
    }


def shown(herd: LiveHerd) -> dict[tuple[str, str], Any]:
    return {
        (gpu.node.id, gpu.facts.uuid): (
            gpu.node.name,
            herd.node_states[gpu.node.row],
            herd.states[gpu.row],
            herd.numbers["since"][gpu.row],
            herd.numbers["utilization_gpu"][gpu.row],
            herd.numbers["memory_used_mebibytes"][gpu.row],
            herd.numbers["temperature_celsius"][gpu.row],
            gpu.users,
            tuple((use.pid, use.user, gpu.node.number("gpu_memory_bytes", use)) for use in gpu.uses),
            tuple((booking.id, booking.holder, booking.phase) for booking in herd.bookings.get(gpu.row, ())),
        )
        for gpu in herd.gpus()
    }


async def agrees(follower: Follower, hub: HubClient) -> None:
    """Wait until the stream has told what /fleet tells; both move on, so they are asked in turn."""

    async def look() -> bool:
        picture = await asyncio.to_thread(hub.herd)
        for _ in range(20):
            follower.take()
            if shown(follower.herd) == told(picture):
                return True
            await asyncio.sleep(0.01)
        return False

    for _ in range(20):
        if await look():
            return
    assert shown(follower.herd) == told(await asyncio.to_thread(hub.herd))


def test_the_stream_tells_what_the_fleet_tells(tmp_path: Path) -> None:
    async def check() -> None:
        async with booking_hub(tmp_path / "hub") as lab:
            ann = await lab.person("ann")
            hub = client(lab.hub.url, ann.token)
            async with Follower(HerdFeed(hub)) as follower:
                await follower.until(lambda: follower.phase == "live")
                await agrees(follower, hub)
                assert len(shown(follower.herd)) == 6
                await lab.report("n3", reported())
                await ann.book(("n2", "GPU-0"), end="2h")
                await follower.until(lambda: {"booked", "fault"} <= set(follower.herd.states))
                await agrees(follower, hub)
                states = {gpu.place: follower.herd.states[gpu.row] for gpu in follower.herd.gpus()}
                assert (states["n2/0"], states["n3/0"], states["n3/1"]) == ("booked", "busy", "fault")
                await lab.report("n3", reported(0.4))
                await agrees(follower, hub)
                follower.feed.retry()
                await follower.until(lambda: [each.phase for each in follower.conditions].count("live") == 2)
                assert follower.error is None
                assert "away" not in [each.phase for each in follower.conditions]
                await agrees(follower, hub)

    asyncio.run(check())


def test_a_hub_that_has_no_room_for_streams_is_polled_and_that_is_said(tmp_path: Path) -> None:
    async def check() -> None:
        async with running_hub(tmp_path / "hub", max_viewers=1) as hub:
            await hub.admit("n1")
            first, second = (HerdFeed(client(hub.url), poll_seconds=0.1) for _ in range(2))
            async with Follower(first) as one:
                await one.until(lambda: one.phase == "live")
                async with Follower(second) as other:
                    await other.until(lambda: other.phase == "polling" and (other.herd.tick or 0) > 2)
                    assert "too many live streams are open" in other.conditions[-1].reason
                    assert [node.name for node in other.herd.nodes] == ["n1"]

    asyncio.run(check())


@contextmanager
def holding_back(answer: Callable[[BaseHTTPRequestHandler], None]) -> Iterator[str]:
    """Something on the way that answers for a hub."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer(self)

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_proxy_that_sends_pages_instead_of_the_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(asked: BaseHTTPRequestHandler) -> None:
        is_stream = asked.path.endswith("/stream")
        body = (
            b"<html>"
            if is_stream
            else b"{}"
            if asked.path.endswith("/session")
            else b'{"time": 5.0, "nodes": []}'
        )
        asked.send_response(200)
        asked.send_header("Content-Type", "text/html" if is_stream else "application/json")
        asked.end_headers()
        asked.wfile.write(body)

    async def check(url: str) -> None:
        async with Follower(HerdFeed(client(url), poll_seconds=0.05)) as follower:
            await follower.until(lambda: follower.phase == "polling")
            assert follower.conditions[-1].reason == "the server there sends no live stream"

    with holding_back(answer) as url:
        asyncio.run(check(url))


def test_on_a_terminal(tmp_path: Path) -> None:
    async def check() -> None:
        async with booking_hub(tmp_path / "hub") as lab:
            await lab.report("n3", reported())
            await eventually(lambda: len(lab.hub.fleet.view().nodes) == 3)
            await asyncio.to_thread(look, lab.hub.url)

    def look(url: str) -> None:
        with FullTerminal("top", "--hub", url, environment={"HOME": str(tmp_path)}) as terminal:
            seen = terminal.until(lambda text: "● live" in text and "▾ n3" in text and " 90% " in text)
            assert re.search(r"0 +A100 80GB +■ busy .* 90% .* ada", seen)
            assert re.search(r"1 +A100 80GB +✕ fault", seen)
            assert "[2J[red]" in seen, "what is hostile is shown, and harmless"
            terminal.press("f2")
            terminal.until(lambda text: "▾ n1" in text and "▾ n3" not in text)
            terminal.press("\x1b")
            terminal.until("▾ n3")
            terminal.press("/bob\r")
            terminal.until(lambda text: "✕ fault" in text and "▾ n1" not in text)
            terminal.press("q")
            assert terminal.end() == 0
            assert terminal.is_restored

    asyncio.run(check())


@pytest.mark.parametrize(
    ("how", "code"),
    [("\x03", 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)],
    ids=["ctrl-c", "term", "hup"],
)
def test_the_terminal_is_restored_however_it_ends(tmp_path: Path, how: Any, code: int) -> None:
    with FullTerminal("top", "--hub", "http://127.0.0.1:9", environment={"HOME": str(tmp_path)}) as terminal:
        terminal.until("127.0.0.1:9 cannot be reached: nothing listens there; retrying")
        terminal.press(how) if isinstance(how, str) else terminal.send(how)
        assert terminal.end() == code
        assert terminal.is_restored


def test_a_terminal_that_is_gone_is_the_end(tmp_path: Path) -> None:
    with FullTerminal("top", "--hub", "http://127.0.0.1:9", environment={"HOME": str(tmp_path)}) as terminal:
        terminal.until("retrying")
        terminal.vanish()
        assert terminal.process.wait(PATIENCE_SECONDS) == 129


def test_a_hub_that_goes_and_comes_back(tmp_path: Path) -> None:
    async def check() -> None:
        hub = HubProcess(tmp_path / "hub")
        await hub.start()
        with FullTerminal("top", "--hub", hub.url, environment={"HOME": str(tmp_path)}) as terminal:
            await asyncio.to_thread(terminal.until, "● live")
            await hub.kill()
            await asyncio.to_thread(terminal.until, "cannot be reached")
            await asyncio.to_thread(terminal.until, "no data for")
            await hub.start()
            await asyncio.to_thread(terminal.until, "● live")
            terminal.press("q")
            assert await asyncio.to_thread(terminal.end) == 0
        await hub.stop()

    asyncio.run(check())


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "gpuherd", "top", *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
        env={**os.environ, **environment},
    )


def test_no_terminal_is_a_sentence() -> None:
    done = run("--hub", "http://127.0.0.1:9")
    assert (done.returncode, done.stdout) == (2, "")
    assert "top needs a terminal for its input and output; use gpuherd status instead" in done.stderr


def test_json_is_to_be_had_elsewhere() -> None:
    done = run("--json")
    assert (done.returncode, done.stdout) == (2, "")
    assert "use gpuherd status --json" in done.stderr
    assert "--json" not in run("--help").stdout


def test_a_dumb_terminal_is_a_sentence() -> None:
    with FullTerminal("top", environment={"TERM": "dumb"}) as terminal:
        assert terminal.end() == 2
        assert "use gpuherd status instead" in terminal.text
        assert b"\x1b" not in terminal.raw


def test_a_wrong_token_is_a_sentence(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("ghu_" + "x" * 43 + "\n")
    token.chmod(0o600)

    async def check() -> None:
        async with running_hub(tmp_path / "hub") as hub:
            await asyncio.to_thread(look, hub.url)

    def look(url: str) -> None:
        with FullTerminal("top", "--hub", url, "--token-file", str(token)) as terminal:
            assert terminal.end() == 4, terminal.text
            assert terminal.is_restored
            said = terminal.raw.rpartition(b"\x1b[?1049l")[2].decode()
            assert re.search(
                r"gpuherd: .* no longer accepts your token\r\n  log in with: gpuherd login\r\n", said
            )

    asyncio.run(check())


def test_a_hub_that_wants_a_login_is_a_sentence(tmp_path: Path) -> None:
    async def check() -> None:
        async with (
            running_hub(tmp_path / "hub", public="off") as hub,
            Follower(HerdFeed(client(hub.url))) as follower,
        ):
            await follower.until(lambda: follower.error)
            assert follower.error is not None
            assert isinstance(follower.error.error, HubRefused)
            assert follower.error.error.status == 401

    asyncio.run(check())


def test_this_machine_alone(tmp_path: Path) -> None:
    with FullTerminal("top", "--here", environment={"HOME": str(tmp_path), "HOSTNAME": "x"}) as terminal:
        seen = terminal.until(lambda text: "● live" in text and "▾" in text)
        assert "this machine" in seen
        terminal.press("q")
        assert terminal.end() == 0
        assert terminal.is_restored
