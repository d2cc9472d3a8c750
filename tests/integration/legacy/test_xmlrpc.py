"""The exchange of the XML-RPC tool, byte for byte, and with Python's own XML-RPC server as the tool has it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import Iterator
from typing import Any
from xmlrpc.server import SimpleXMLRPCServer

import pytest

from gpuherd.collect.scrub import scrub
from gpuherd.model.targets import Target
from gpuherd.sources.settings import XmlRpcSettings
from gpuherd.sources.xmlrpc import XmlRpcWay
from support.old_nodes import Question, Reply, following, serving
from support.running import PATIENCE_SECONDS, until

STATS: dict[str, Any] = {
    "gpus": [
        {
            "memory_total": 16280.875,
            "memory_used": 1025.25,
            "memory_free": 15255.625,
            "utilization": 12,
            "temperature": 36,
            "model": "Tesla P100-PCIE-16GB",
        },
        {
            "memory_total": 16280.875,
            "memory_used": 0.0,
            "memory_free": 16280.875,
            "utilization": "N/A",
            "temperature": 30,
            "model": "Tesla P100-PCIE-16GB",
        },
    ],
    "procs": [
        [
            {
                "pid": 77,
                "process_name": "python",
                "used_memory": 1015,
                "unit": "MiB",
                "userid": "carol",
                "time": "0:10:00",
            }
        ],
        [],
    ],
}
QUESTION = (
    b"<?xml version='1.0'?>\n<methodCall>\n<methodName>gpu_stats</methodName>\n<params>\n</params>\n"
    b"</methodCall>\n"
)
ANSWER = (
    b"<?xml version='1.0'?>\n<methodResponse>\n<params>\n<param>\n<value><string>"
    + json.dumps(STATS).encode()
    + b"</string></value>\n</param>\n</params>\n</methodResponse>\n"
)
BILLION_LAUGHS = (
    b'<?xml version="1.0"?><!DOCTYPE lolz [<!ENTITY a "ha">'
    + b"".join(b'<!ENTITY %c "%b">' % (98 + n, b"&%c;" % (97 + n) * 10) for n in range(9))
    + b"]><methodResponse><params><param><value><string>&j;</string></value></param></params></methodResponse>"
)


def python_server(body: bytes) -> bytes:
    return (
        b"HTTP/1.0 200 OK\r\nServer: BaseHTTP/0.6 Python/3.6.9\r\nDate: Sat, 29 Apr 2023 13:17:41 GMT\r\n"
        b"Content-type: text/xml\r\nContent-length: %d\r\n\r\n%b" % (len(body), body)
    )


def way(**settings: Any) -> XmlRpcWay:
    return XmlRpcWay(
        XmlRpcSettings(**{"interval_seconds": 0.2, "deadline_seconds": 1.0, **settings}), scrub=scrub
    )


@contextlib.contextmanager
def rpc_server(function: Any) -> Iterator[int]:
    """The tool's own server."""
    server = SimpleXMLRPCServer(("127.0.0.1", 0), logRequests=False)
    server.register_function(function, "gpu_stats")
    serving_thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    serving_thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        serving_thread.join(PATIENCE_SECONDS)
        server.server_close()


def test_the_documented_exchange() -> None:
    questions: list[Question] = []

    async def reply(question: Question, writer: asyncio.StreamWriter) -> None:
        questions.append(question)
        writer.write(python_server(ANSWER))

    async def run() -> None:
        target = Target(name="host1", address="127.0.0.1")
        async with serving(reply) as port, following(way(port=port), target) as (follower,):
            await until(lambda: len(follower.intake.reports) >= 2, "two reports")
        assert questions[0].head.startswith(b"POST / HTTP/1.1\r\n")
        assert b"\r\nContent-Type: text/xml\r\n" in questions[0].head
        assert questions[0].body == QUESTION
        report = follower.intake.last
        assert [d.utilization_gpu for d in report.sample.devices] == [0.12, None]
        assert report.table.processes[0].user == "carol"
        assert report.sample.uses[0].gpu_memory_bytes == 1015 * 2**20
        assert follower.intake.reports[0].table is report.table
        assert follower.failures == []

    asyncio.run(run())


def test_the_tools_own_server() -> None:
    async def run(port: int) -> None:
        async with following(way(), Target(name="host1", address="localhost", port=port)) as (follower,):
            await until(lambda: len(follower.intake.reports) >= 2, "two reports")
        assert follower.intake.last.facts.devices[0].name == "Tesla P100-PCIE-16GB"

    with rpc_server(lambda: json.dumps(STATS)) as port:
        asyncio.run(run(port))


def test_a_fault_of_the_tool_is_told_and_passes() -> None:
    """The tool fails as a whole when a process ends at the wrong moment."""
    answers = iter([json.dumps(STATS), None, json.dumps(STATS)])

    def gpu_stats() -> str:
        answer = next(answers, json.dumps(STATS))
        if answer is None:
            raise LookupError("process no longer exists (pid=77)")
        return answer

    async def run(port: int) -> None:
        async with following(way(), Target(name="host1", address="127.0.0.1", port=port)) as (follower,):
            await until(lambda: len(follower.intake.reports) >= 3, "reports before and after")
        (failure,) = follower.failures
        assert failure.code == "no_data"
        assert "no longer exists" in str(failure)

    with rpc_server(gpu_stats) as port:
        asyncio.run(run(port))


def saying(content: bytes) -> Reply:
    async def reply(_: Question, writer: asyncio.StreamWriter) -> None:
        writer.write(content)

    return reply


async def silent(_: Question, __: asyncio.StreamWriter) -> None:
    await asyncio.sleep(60)


async def endless(_: Question, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.0 200 OK\r\n\r\n<methodResponse>")
    for _count in range(100):
        writer.write(b"<a/>" * 2**18)
        await writer.drain()


BAD: dict[str, tuple[Reply, set[str]]] = {
    "garbage": (saying(b"\x00\xff" * 500), {"garbled"}),
    "billion laughs": (saying(python_server(BILLION_LAUGHS)), {"garbled"}),
    "no JSON": (saying(python_server(ANSWER.replace(b'{"gpus"', b"gpus"))), {"garbled"}),
    "half": (saying(python_server(ANSWER)[:300]), {"garbled", "link_lost"}),
    "invalid UTF-8": (saying(python_server(ANSWER.replace(b"carol", b"\xff\xfe"))), {"garbled"}),
    "ANSI": (saying(python_server(b"\x1b[31mKeyError\x1b[0m")), {"garbled"}),
    "100 MB": (endless, {"too_large"}),
    "nothing": (silent, {"timeout"}),
    "404": (saying(b"HTTP/1.0 404 Not Found\r\nContent-Length: 0\r\n\r\n"), {"garbled"}),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_answers_are_told_and_do_not_touch_the_neighbour(kind: str) -> None:
    bad, codes = BAD[kind]

    async def run() -> None:
        async with (
            serving(bad, "127.0.8.1") as port,
            serving(saying(python_server(ANSWER)), "127.0.8.2", port),
            following(
                way(port=port, deadline_seconds=0.5),
                Target(name="host1", address="127.0.8.1"),
                Target(name="host2", address="127.0.8.2"),
            ) as (broken, good),
        ):
            await until(lambda: bool(broken.failures) and len(good.intake.reports) >= 3, "both")
        assert broken.codes <= codes
        assert all("host1" in str(f) or "127.0.8.1" in str(f) for f in broken.failures)
        assert broken.intake.reports == []
        assert good.failures == []

    asyncio.run(run())
