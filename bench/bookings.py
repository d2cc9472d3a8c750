"""Bookings over HTTP: making one among 100,000, and the timeline of 1,000 devices over 30 days."""

from __future__ import annotations

import http.client
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import insert, update

from bench.measure import Figure, cpu_seconds, median
from bench.servers import Server, enrol_many, serving
from gpuherd.auth.tokens import create_token
from gpuherd.model.devices import DeviceFacts, DeviceSample
from gpuherd.model.hosts import HostFacts
from gpuherd.model.people import Actor
from gpuherd.model.reports import NodeFacts, Report, Sample
from gpuherd.records.database import open_records, records_file
from gpuherd.records.people import PeopleRecords
from gpuherd.records.tables import booking_devices, booking_revision, bookings

__all__ = ["measure_bookings"]

NODES, GPUS, PER_DEVICE = 125, 8, 100
DAY = 86_400
BY = Actor(account_id=None, label="bench")
ROUNDS = 100


def _uuid(node: int, index: int) -> str:
    return f"GPU-{node:04}-{index}"


def _fill(state_dir: Path, now: int) -> str:
    """Write an account and bookings, spread evenly from 300 days ago to 60 days ahead; gives the account's token."""
    engine = open_records(records_file(state_dir))
    people = PeopleRecords(engine)
    account = people.create_account(name="bench", display_name="Bench", role="admin", now=now, by=BY)
    token = create_token(people, account, title="bench", scopes=["read", "book"], days=1, now=now, by=BY)
    chance = random.Random(1)  # noqa: S311 - only a spread
    rows: list[dict[str, Any]] = []
    devices: list[dict[str, Any]] = []
    step = 360 * DAY // PER_DEVICE
    for node in range(NODES):
        for index in range(GPUS):
            for number in range(PER_DEVICE):
                begin = now - 300 * DAY + number * step + chance.randrange(0, DAY)
                times = {
                    "starts_at": begin,
                    "ends_at": begin + chance.randrange(DAY // 2, 2 * DAY),
                    "holds": True,
                }
                identity = len(rows) + 1
                text = {"title": f"run {identity}", "comment": "", "owner_name": "Bench", "zone": "UTC"}
                state = {
                    "state": "active",
                    "origin": "person",
                    "created_at": now,
                    "changed_at": now,
                    "revision": 1,
                }
                rows.append({"id": identity, "owner_id": account.id, **text, **times, **state})
                devices.append(
                    {"booking_id": identity, "node_id": f"n{node:05}", "uuid": _uuid(node, index), **times}
                )
    with engine.begin() as connection:
        connection.execute(insert(bookings), rows)
        connection.execute(insert(booking_devices), devices)
        connection.execute(update(booking_revision).values(number=1))
    engine.dispose()
    return token.secret


class _Client:
    """One connection that stays open."""

    def __init__(self, server: Server, token: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def ask(self, method: str, path: str, body: Any = None) -> tuple[float, bytes]:
        """Give the seconds it took and the answer."""
        content = None if body is None else msgspec.json.encode(body)
        began = time.perf_counter()
        self._connection.request(method, f"/api/v1/{path}", content, self._headers)
        response = self._connection.getresponse()
        answer = response.read()
        took = time.perf_counter() - began
        if response.status >= 300:
            raise SystemExit(f"{method} {path}: {response.status} {answer[:300]!r}")
        return took, answer


def _report(server: Server, credential: str, node: int) -> None:
    facts = tuple(
        DeviceFacts(
            uuid=_uuid(node, index), index=index, name="NVIDIA A100-SXM4-80GB", memory_total_bytes=80 * 2**30
        )
        for index in range(GPUS)
    )
    idle = tuple(DeviceSample(utilization_gpu=0.0, memory_used_bytes=0) for _ in facts)
    report = Report(
        facts=NodeFacts(host=HostFacts(hostname=f"n{node}"), devices=facts),
        sample=Sample(time=time.time(), devices=idle),
    )
    _Client(server, credential).ask("POST", "reports", report)


def _create(client: _Client, now: int, number: int) -> tuple[float, int]:
    """Book a device beyond all other bookings."""
    node, index = divmod(number * 7 % (NODES * GPUS), GPUS)
    wish = {
        "devices": [{"node_id": f"n{node:05}", "uuid": _uuid(node, index)}],
        "start": now + 80 * DAY + number * 7200,
        "end": "1h",
    }
    took, answer = client.ask("POST", "bookings", wish)
    return took, int(msgspec.json.decode(answer)[0]["id"])


def measure_bookings() -> list[Figure]:
    """Time requests as a client sees them, on one connection, after the hub has settled."""
    with tempfile.TemporaryDirectory() as folder:
        state_dir, now = Path(folder), int(time.time())
        credentials = enrol_many(state_dir, NODES)
        token = _fill(state_dir, now)
        config = state_dir / "gpuherd.toml"
        config.write_text(f'[hub]\nstate_dir = "{state_dir}"\n[availability]\noffline_after_seconds = 1e6\n')
        with serving(
            ["-m", "gpuherd", "hub", "--config", str(config), "run", "--listen", "127.0.0.1:0"]
        ) as server:
            for node, credential in enumerate(credentials):
                _report(server, credential, node)
            time.sleep(3)
            client = _Client(server, token)
            booked: list[int] = []

            def create(number: int) -> float:
                took, booking_id = _create(client, now, number)
                booked.append(booking_id)
                return took

            def extend(number: int) -> float:
                return client.ask("POST", f"bookings/{booked[number]}/extend", {"end": "30m"})[0]

            def choose(number: int) -> float:
                wish = {"any": "2 x A100", "start": now + 100 * DAY + number * 7200, "end": "1h"}
                return client.ask("POST", "bookings", wish)[0]

            def search(_: int) -> float:
                return client.ask("GET", f"slots?count=8&hours=24&same_node=true&since={now}")[0]

            query = f"timeline?since={now - DAY}&until={now + 29 * DAY}"

            def draw(_: int) -> float:
                return client.ask("GET", query)[0]

            answer = client.ask("GET", query)[1]
            shown = f"{len(msgspec.json.decode(answer)['bookings'])} bookings, {len(answer) // 1000} kB"
            idle = _idle_cores(server)
            runs = [_timed(server, verb, idle) for verb in (create, extend, choose, search, draw)]
    kept = f"{NODES * GPUS * PER_DEVICE:,} bookings"
    return [
        _figure("book one device", runs[0], 10, kept),
        _figure("extend a booking", runs[1], 10, kept),
        _figure("book any 2 of 1,000 devices", runs[2], None, kept),
        _figure("next free slot of 8 on one node", runs[3], None, kept),
        _figure("timeline of 1,000 devices × 30 days", runs[4], 100, shown),
    ]


class _Run(NamedTuple):
    """How long requests took, and what each cost the hub."""

    seconds: list[float]
    cpu_seconds: float


def _idle_cores(server: Server) -> float:
    before, began = cpu_seconds(server.pid), time.monotonic()
    time.sleep(5)
    return (cpu_seconds(server.pid) - before) / (time.monotonic() - began)


def _timed(server: Server, verb: Callable[[int], float], idle_cores: float) -> _Run:
    before, began = cpu_seconds(server.pid), time.monotonic()
    seconds = [verb(number) for number in range(ROUNDS)]
    spent = cpu_seconds(server.pid) - before - idle_cores * (time.monotonic() - began)
    return _Run(seconds, max(0.0, spent) / ROUNDS)


def _figure(what: str, run: _Run, goal_ms: float | None, note: str) -> Figure:
    value = median(run.seconds) * 1000
    slow = sorted(run.seconds)[int(len(run.seconds) * 0.95)] * 1000
    return Figure(
        id="bookings",
        what=what,
        value=round(value, 2),
        unit="ms",
        goal="" if goal_ms is None else f"≤ {goal_ms:g} ms",
        met=None if goal_ms is None else value <= goal_ms,
        note=f"{note}; 95 % within {slow:.1f} ms; {run.cpu_seconds * 1000:.1f} ms of the hub's CPU",
    )


if __name__ == "__main__":
    for figure in measure_bookings():
        print(figure)
