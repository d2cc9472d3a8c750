"""The exchange of the HTTP tool, byte for byte: the hub asks nodes, the old page asks the hub."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import re
import socket
import threading
from pathlib import Path
from typing import Any

import pytest

from gpuherd.api.guard import Guard
from gpuherd.api.legacy.get_status import GetStatusApp
from gpuherd.api.sender import Senders
from gpuherd.collect.scrub import scrub
from gpuherd.fleet.fleet import Fleet
from gpuherd.fleet.names import Names
from gpuherd.fleet.settings import DisplaySettings
from gpuherd.model.targets import Target
from gpuherd.sources.node_info import README_PASSWORD, NodeInfoWay
from gpuherd.sources.settings import GetStatusSettings, NodeInfoSettings
from support.front_doors import ProxyName, proxy_site
from support.herd import WORKING, ManualClock, Speaker, gpu
from support.old_nodes import Question, Reply, following, serving
from support.running import PATIENCE_SECONDS, free_port, until

from .conftest import RawAnswer, exchange, listening

LEGACY_DOC = Path(__file__).parents[3] / "docs" / "legacy.md"

JSON = (
    b'{"gpus":[{"index":0,"name":"NVIDIA A100-SXM4-40GB","temp":34,"tot_mem":40960,"use_mem":2048,"users":'
    b'[{"command":"python run.py","mem(MiB)":2040,"pid":123,"username":"alice"}],"utilize":87}],'
    b'"hostname":"node_1","ips":[["eno1","192.168.0.3"]],"last_update":"2023-04-29T21:17:%02d.%06d"}\n'
)
WRONG_PASSWORD = (
    b"HTTP/1.1 404 NOT FOUND\r\nServer: Werkzeug/2.3.3 Python/3.9.16\r\nContent-Type: text/html; charset=utf-8\r\n"
    b"Content-Length: 27\r\nConnection: close\r\n\r\n<!doctype html>\n<html lang=e"
)[:-1]


def flask(body: bytes) -> bytes:
    """What the tool's Flask server sends around its JSON."""
    return (
        b"HTTP/1.1 200 OK\r\nServer: Werkzeug/2.3.3 Python/3.9.16\r\nDate: Sat, 29 Apr 2023 13:17:41 GMT\r\n"
        b"Content-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%b"
        % (len(body), body)
    )


class Node:
    """A node that reads its GPUs anew for every question, unless it hangs."""

    def __init__(self, password: str = README_PASSWORD) -> None:
        self.password = password
        self.questions: list[Question] = []
        self.is_hung = False
        self._readings = itertools.count()
        self._last = 0

    async def reply(self, question: Question, writer: asyncio.StreamWriter) -> None:
        self.questions.append(question)
        if json.loads(question.body) != {"passwd": self.password}:
            writer.write(WRONG_PASSWORD)
            return
        if not self.is_hung:
            self._last = next(self._readings)
        writer.write(flask(JSON % (self._last % 60, self._last)))


def way(**settings: object) -> NodeInfoWay:
    quick = {"interval_seconds": 0.2, "deadline_seconds": 1.0, **settings}
    return NodeInfoWay(NodeInfoSettings(**quick), scrub=scrub)  # type: ignore[arg-type]


def target(port: int, name: str = "gpu01", address: str = "127.0.0.1") -> Target:
    return Target(name=name, address=address, port=port)


def test_the_documented_exchange() -> None:
    async def run() -> None:
        node = Node()
        async with serving(node.reply) as port, following(way(), target(port)) as (follower,):
            await until(lambda: len(follower.intake.reports) >= 2, "two reports")
        question = node.questions[0]
        assert question.head.startswith(b"POST /get-status HTTP/1.1\r\n")
        assert b"\r\nContent-Type: application/json\r\n" in question.head
        assert question.body == b'{"passwd":"8888"}'
        report = follower.intake.last
        assert report.facts.host.hostname == "node_1"
        assert report.sample.devices[0].utilization_gpu == 0.87
        assert report.table.processes[0].user == "alice"
        assert follower.failures == []
        first, second = follower.intake.reports[:2]
        assert first.facts is second.facts
        assert first.table is second.table

    asyncio.run(run())


def test_a_password_of_ones_own(tmp_path: Path) -> None:
    secret = tmp_path / "password"
    secret.write_text("correct horse\n")

    async def run() -> None:
        node = Node(password="correct horse")
        async with serving(node.reply) as port:
            async with following(way(password_file=secret), target(port)) as (follower,):
                await until(lambda: len(follower.intake.reports) >= 1, "a report")
            async with following(way(), target(port)) as (follower,):
                await until(lambda: bool(follower.failures), "a refusal")
            assert follower.codes == {"wrong_password"}
            assert follower.failures[0].needs_person
            async with following(way(password_file=tmp_path / "missing"), target(port)) as (follower,):
                await until(lambda: bool(follower.failures), "a complaint")
            assert "missing" in str(follower.failures[0])
            assert "correct horse" not in repr(follower.failures)

    asyncio.run(run())


def test_the_password_that_everyone_knows_is_warned_of(
    caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    way()
    assert "password_file" in caplog.text
    caplog.clear()
    way(password_file=tmp_path / "password")
    assert caplog.text == ""


def test_a_node_that_hangs_while_it_answers_is_not_called_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpuherd.sources.node_info.NODE_READS_EVERY_SECONDS", 0.2)

    async def run() -> None:
        node = Node()
        async with serving(node.reply) as port, following(way(), target(port)) as (follower,):
            await until(lambda: len(follower.intake.reports) >= 2, "reports")
            node.is_hung = True
            await until(lambda: len(follower.failures) >= 3, "trouble that lasts")
            count = len(follower.intake.reports)
            assert follower.codes == {"no_data"}
            assert "2023-04-29T21:17" in str(follower.failures[0])
            asked = len(node.questions)
            await until(lambda: len(node.questions) > asked + 3, "more questions")
            assert len(follower.intake.reports) == count  # trying again does not make old data new
            node.is_hung = False
            await until(lambda: len(follower.intake.reports) > count, "news")

    asyncio.run(run())


def test_a_node_that_hung_before_the_hub_came_is_never_called_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpuherd.sources.node_info.NODE_READS_EVERY_SECONDS", 0.2)

    async def run() -> None:
        node = Node()
        node.is_hung = True
        async with serving(node.reply) as port, following(way(), target(port)) as (follower,):
            await until(lambda: "no_data" in follower.codes, "trouble")
        assert follower.intake.reports == []

    asyncio.run(run())


# -- one bad of fifty ----------------------------------------------------------------------------------------------


def saying(content: bytes) -> Reply:
    async def reply(_: Question, writer: asyncio.StreamWriter) -> None:
        writer.write(content)

    return reply


async def silent(_: Question, __: asyncio.StreamWriter) -> None:
    await asyncio.sleep(60)


async def hanging_up(_: Question, writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()


async def endless(_: Question, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
    for _count in range(100):
        writer.write(b" " * 2**20)
        await writer.drain()


async def dripping(_: Question, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
    while True:
        writer.write(b" ")
        await writer.drain()
        await asyncio.sleep(0.1)


BAD: dict[str, tuple[Reply, set[str]]] = {
    "garbage": (saying(bytes(range(256)) * 8), {"garbled"}),
    "html": (saying(flask(b"<html>hello</html>")), {"garbled"}),
    "half a line": (saying(flask(JSON % (1, 1))[:250]), {"garbled", "link_lost"}),
    "100 MB": (endless, {"too_large"}),
    "invalid UTF-8": (saying(flask((JSON % (1, 1)).replace(b"alice", b"\xff\xfe"))), {"garbled"}),
    "ANSI": (saying(flask(b"\x1b[31mTraceback\x1b[0m")), {"garbled"}),
    "gzip": (
        saying(
            flask(b"\x1f\x8b\x08").replace(b"\r\nConnection", b"\r\nContent-Encoding: gzip\r\nConnection")
        ),
        {"garbled"},
    ),
    "nothing": (silent, {"timeout"}),
    "drop by drop": (dripping, {"timeout"}),
    "hangs up": (hanging_up, {"link_lost"}),
    "redirect": (
        saying(b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:9/\r\nContent-Length: 0\r\n\r\n"),
        {"garbled"},
    ),
    "broken": (saying(b"HTTP/1.1 500 INTERNAL SERVER ERROR\r\nContent-Length: 0\r\n\r\n"), {"garbled"}),
}


DEADLINE_SECONDS = 6.0
"""Of nodes that never answer: longer than 49 others take for two reports."""


@pytest.mark.parametrize("kind", BAD)
@pytest.mark.promise("no-redirect-followed")
def test_one_bad_of_fifty(kind: str) -> None:
    bad, codes = BAD[kind]

    async def run() -> None:
        deadline_seconds = DEADLINE_SECONDS if codes == {"timeout"} else PATIENCE_SECONDS
        asking = way(interval_seconds=0.5, deadline_seconds=deadline_seconds)
        async with contextlib.AsyncExitStack() as stack:
            port = await stack.enter_async_context(serving(bad, "127.0.9.1"))
            for number in range(2, 51):
                await stack.enter_async_context(serving(Node().reply, f"127.0.9.{number}", port))
            targets = [target(port, f"gpu{number:02}", f"127.0.9.{number}") for number in range(1, 51)]
            broken, *good = await stack.enter_async_context(following(asking, *targets))
            await until(lambda: all(len(one.intake.reports) >= 2 for one in good), "two reports of each")
            if codes == {"timeout"}:
                assert broken.failures == [], "the others waited for it"
            await until(lambda: bool(broken.failures), "a reason")
        assert broken.codes <= codes
        assert broken.intake.reports == []
        assert all("gpu01" in str(f) or "127.0.9.1" in str(f) for f in broken.failures)
        assert all(str(failure).isprintable() for failure in broken.failures)
        assert [one.target.name for one in good if one.failures] == []

    asyncio.run(run())


def test_another_hosts_data_is_noticed() -> None:
    async def run() -> None:
        node = Node()
        node.is_hung = True
        targets = [target(0, name) for name in ("gpu01", "gpu02")]
        async with serving(node.reply) as port:
            targets = [Target(name=t.name, address=t.address, port=port) for t in targets]
            async with following(way(), *targets) as followers:
                await until(lambda: len(node.questions) >= 4, "first looks")
                for node._last in range(1, 4):  # one reading, told to both
                    await until(lambda: all(len(f.intake.reports) >= node._last for f in followers), "both")
        told = [
            problem for f in followers for report in f.intake.reports for problem in report.sample.problems
        ]
        assert {problem.code for problem in told} == {"same_machine"}
        assert "node_1" in told[0].message

    asyncio.run(run())


def test_a_port_where_nobody_listens() -> None:
    async def run() -> None:
        async with serving(silent) as port:
            pass
        async with following(way(), target(port), Target(name="gpu02", address="no-such-host.invalid")) as (
            closed,
            lost,
        ):
            await until(lambda: bool(closed.failures) and bool(lost.failures), "reasons")
        assert closed.codes == {"unreachable"}
        assert lost.codes <= {"unreachable", "timeout"}

    asyncio.run(run())


def test_a_dead_name_server_holds_up_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    look_up, answered = socket.getaddrinfo, threading.Event()

    def slow(host: str, *rest: Any, **more: Any) -> Any:
        if host.endswith(".invalid"):
            answered.wait(PATIENCE_SECONDS)
            raise socket.gaierror(socket.EAI_AGAIN, "no answer")
        return look_up(host, *rest, **more)

    async def run() -> None:
        lost = [Target(name=f"lost{n}", address=f"lost{n}.invalid") for n in range(20)]
        async with (
            serving(Node().reply) as port,
            following(way(), target(port, address="localhost"), *lost) as (
                good,
                *others,
            ),
        ):
            await until(lambda: all(one.failures for one in others), "reasons of the lost")
            await until(lambda: len(good.intake.reports) >= 3, "reports of the good")
            assert await asyncio.wait_for(asyncio.to_thread(lambda: 42), PATIENCE_SECONDS) == 42
            assert {code for one in others for code in one.codes} == {"timeout"}
            assert good.failures == []
            answered.set()

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    asyncio.run(run())


# -- the hub as the main node --------------------------------------------------------------------------------------


class Main:
    """The hub's side of GET /get-status, with a herd of two behind it."""

    def __init__(self, *networks: str, proxies: tuple[str, ...] = ()) -> None:
        self.clock = ManualClock()
        self.fleet = Fleet(clock=self.clock, names=Names(DisplaySettings(keep_list_order=True)))
        for position, name in enumerate(("node_2", "node_1")):
            self.fleet.add_node(name, name, "node_info", position)
        speaker = Speaker(self.fleet, self.clock, "node_1")
        speaker.describe(gpu(0))
        speaker.sample(WORKING)
        self.fleet.tick()
        self.app = GetStatusApp(
            GetStatusSettings(listen="127.0.0.1:7070", networks=networks or ("127.0.0.0/8",)),
            fleet_view=self.fleet.view,
            guard=Guard([]),
            senders=Senders(proxies),
            monotonic=self.clock.monotonic,
        )

    def ask(self, request: bytes) -> RawAnswer:
        async def run() -> RawAnswer:
            async with listening(self.app) as port:
                return await exchange(port, request)

        return asyncio.run(run())


QUESTION = (
    b"GET /get-status HTTP/1.1\r\nHost: 192.168.0.1:7070\r\nAccept: */*\r\nContent-Type: application/json\r\n"
    b"X-Requested-With: XMLHttpRequest\r\nReferer: http://192.168.0.1:7070/\r\n\r\n"
)


def test_the_old_page_gets_every_node_in_the_order_of_the_list() -> None:
    answer = Main().ask(QUESTION)
    assert answer.status_line == "HTTP/1.1 200 OK"
    assert answer.headers["content-type"] == "application/json"
    assert list(json.loads(answer.body)) == ["Nodes"]
    never, live = json.loads(answer.body)["Nodes"]
    assert never == {"hostname": "node_2", "gpus": [], "status": False, "version": ""}
    assert (live["hostname"], live["status"], live["version"]) == ("node_1", True, "NVIDIA A100-SXM4-80GB")
    assert live["gpus"][0]["utilize"] == 90


LOCAL = QUESTION.replace(b"Host: 192.168.0.1:7070", b"Host: localhost:7070")


@pytest.mark.parametrize(
    ("proxies", "request_bytes", "status"),
    [
        ((), LOCAL, 200),
        (("10.0.0.5",), LOCAL, 200),
        # A proxy on this machine opens it to nobody.
        (("127.0.0.1",), LOCAL, 403),
        (("::1",), LOCAL, 403),
        (("127.0.0.0/8",), LOCAL, 403),
        ((), LOCAL.replace(b"Accept", b"X-Forwarded-For: 127.0.0.1\r\nAccept"), 403),
        ((), LOCAL.replace(b"Accept", b"X-Real-IP: 127.0.0.1\r\nAccept"), 403),
        ((), LOCAL.replace(b"Accept", b"Via: 1.1 cache\r\nAccept"), 403),
        ((), LOCAL.replace(b"HTTP/1.1", b"HTTP/1.0"), 403),
        ((), QUESTION, 403),
    ],
)
def test_scripts_on_the_hubs_machine_need_not_be_listed(
    proxies: tuple[str, ...], request_bytes: bytes, status: int
) -> None:
    assert Main("10.0.0.0/8", proxies=proxies).ask(request_bytes).status == status


def test_nginx_with_one_line_opens_it_to_nobody(tmp_path: Path) -> None:
    """Neither a header nor the name that people typed tells that somebody else asks."""
    page_port = free_port()

    async def run() -> RawAnswer:
        async with listening(Main("10.0.0.0/8").app) as port:
            site = f"server {{ listen 127.0.0.1:{page_port}; location / {{ proxy_pass http://127.0.0.1:{port}; }} }}"
            with proxy_site("nginx", site, tmp_path / "proxy", page_port):
                request = b"GET /get-status HTTP/1.1\r\nHost: gpus.lab\r\nConnection: close\r\n\r\n"
                return await exchange(page_port, request)

    assert asyncio.run(run()).status == 403


@pytest.mark.parametrize("proxy", ["nginx", "caddy"])
@pytest.mark.parametrize(("networks", "status"), [(("10.0.0.0/8",), 403), (("10.0.0.0/8", "127.0.0.1"), 200)])
def test_the_proxy_examples_serve_the_old_pages_files_and_what_they_ask_for(
    tmp_path: Path, proxy: ProxyName, networks: tuple[str, ...], status: int
) -> None:
    (example,) = re.findall(rf"```{proxy}\n(.*?)```", LEGACY_DOC.read_text(), re.DOTALL)
    listen = {"nginx": ("listen 8081", "listen 127.0.0.1:{}"), "caddy": ("http://:8081", "http://:{}")}[proxy]
    page = tmp_path / "page"
    page.mkdir()
    (page / "index.html").write_text("the old page")
    page_port = free_port()

    async def run() -> tuple[RawAnswer, ...]:
        async with listening(Main(*networks).app) as port:
            site = example
            for old, new in (
                (listen[0], listen[1].format(page_port)),
                ("192.168.0.0/24", "127.0.0.1"),
                ("/srv/gpu-monitor", str(page)),
                ("127.0.0.1:7070", f"127.0.0.1:{port}"),
            ):
                assert old in site
                site = site.replace(old, new)
            with proxy_site(proxy, site, tmp_path / "proxy", page_port):
                request = b"GET %s HTTP/1.1\r\nHost: 192.168.0.1:8081\r\nConnection: close\r\n\r\n"
                return (
                    await exchange(page_port, request % b"/"),
                    await exchange(page_port, request % b"/get-status"),
                    await exchange(page_port, request % b"/get-status", source="127.0.0.2"),
                )

    shown, asked, stranger = asyncio.run(run())
    assert (shown.status, shown.body) == (200, b"the old page")
    assert asked.status == status
    assert (b'"Nodes"' in asked.body) == (status == 200)
    assert stranger.status == 403


@pytest.mark.parametrize(
    ("networks", "request_bytes", "status"),
    [
        (("10.0.0.0/8",), QUESTION, 403),
        (("127.0.0.0/8",), QUESTION.replace(b"Host: 192.168.0.1:7070", b"Host: evil.example"), 421),
        (("127.0.0.0/8",), QUESTION.replace(b"GET /get-status", b"GET /"), 404),
        (("127.0.0.0/8",), QUESTION.replace(b"GET /get-status", b"POST /get-status"), 405),
    ],
)
def test_nobody_and_nothing_else(networks: tuple[str, ...], request_bytes: bytes, status: int) -> None:
    answer = Main(*networks).ask(request_bytes)
    assert answer.status == status
    assert json.loads(answer.body)["error"]["message"]
