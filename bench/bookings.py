"""Bookings over HTTP: making one among 100,000, and the timeline of 1,000 devices over 30 days."""

from __future__ import annotations

import http.client
import random
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import insert, update

from bench.measure import Figure, median
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
            creates, anys, changes, conflicts = [], [], [], []
            for number in range(ROUNDS):
                took, booking_id = _create(client, now, number)
                creates.append(took)
                changes.append(client.ask("POST", f"bookings/{booking_id}/extend", {"end": "30m"})[0])
                wish = {"any": "2 x A100", "start": now + 100 * DAY + number * 7200, "end": "1h"}
                anys.append(client.ask("POST", "bookings", wish)[0])
                conflicts.append(client.ask("GET", f"slots?count=8&hours=24&same_node=true&since={now}")[0])
            query = f"timeline?since={now - DAY}&until={now + 29 * DAY}"
            answers = [client.ask("GET", query) for _ in range(30)]
            found = msgspec.json.decode(answers[0][1])
            shown = f"{len(found['bookings'])} bookings, {len(answers[0][1]) // 1000} kB"
    kept = f"{NODES * GPUS * PER_DEVICE:,} bookings"
    return [
        _figure("book one device", creates, 10, kept),
        _figure("extend a booking", changes, 10, kept),
        _figure("book any 2 of 1,000 devices", anys, None, kept),
        _figure("next free slot of 8 on one node", conflicts, None, kept),
        _figure("timeline of 1,000 devices × 30 days", [took for took, _ in answers], 100, shown),
    ]


def _figure(what: str, seconds: list[float], goal_ms: float | None, note: str) -> Figure:
    value = median(seconds) * 1000
    slow = sorted(seconds)[int(len(seconds) * 0.95)] * 1000
    return Figure(
        id="bookings",
        what=what,
        value=round(value, 2),
        unit="ms",
        goal="" if goal_ms is None else f"≤ {goal_ms:g} ms",
        met=None if goal_ms is None else value <= goal_ms,
        note=f"{note}; 95 % within {slow:.1f} ms",
    )


if __name__ == "__main__":
    for figure in measure_bookings():
        print(figure)
