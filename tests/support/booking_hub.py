"""A hub with a few GPUs and people who book them over HTTP, each with a token of their own."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp

from gpuherd.api.hub import Hub
from gpuherd.auth.tokens import create_token
from gpuherd.model.devices import DeviceFacts
from gpuherd.model.hosts import HostFacts
from gpuherd.model.people import Actor, Role, TokenScope
from gpuherd.model.processes import Process, ProcessSample, ProcessTable, ProcessUse, UseSample
from gpuherd.model.reports import NodeFacts, Report, Sample
from support.herd import GIB, IDLE, gpu
from support.hub import eventually, running_hub

__all__ = ["Booker", "booking_hub", "report_of"]

BY = Actor(account_id=None, label="test")
ALL: tuple[TokenScope, ...] = ("read", "book", "admin")


def report_of(*devices: DeviceFacts, users: dict[int, str] | None = None) -> Report:
    """A report of idle devices; ``users``: whose process runs on which."""
    running = list((users or {}).items())
    return Report(
        facts=NodeFacts(host=HostFacts(hostname="any"), devices=devices),
        table=ProcessTable(
            processes=tuple(Process(pid=100 + place, user=user) for place, (_, user) in enumerate(running)),
            uses=tuple(ProcessUse(process=place, device=device) for place, (device, _) in enumerate(running)),
        ),
        sample=Sample(
            time=time.time(),
            devices=tuple(IDLE for _ in devices),
            processes=tuple(ProcessSample() for _ in running),
            uses=tuple(UseSample(gpu_memory_bytes=GIB) for _ in running),
        ),
    )


class Booker:
    """Someone with a token, or nobody."""

    def __init__(
        self, hub: Hub, session: aiohttp.ClientSession, token: str | None, account_id: str | None
    ) -> None:
        self.hub, self.account_id, self.token = hub, account_id, token
        self._session = session
        self.headers = {} if token is None else {"Authorization": f"Bearer {token}"}

    async def ask(self, method: str, path: str, body: Any = None, **query: Any) -> tuple[int, Any]:
        """Give status and decoded body."""
        options: dict[str, Any] = {"headers": self.headers, "params": query}
        if body is not None:
            options["json"] = body
        async with self._session.request(method, f"api/v1/{path}", **options) as response:
            assert response.status != 500, await response.text()
            return response.status, await response.json()

    async def get(self, path: str, **query: Any) -> Any:
        status, body = await self.ask("GET", path, **query)
        assert status == 200, body
        return body

    async def book(self, *devices: tuple[str, str], **fields: Any) -> list[dict[str, Any]]:
        """Book devices, given as node and UUID; everything else as in the API."""
        status, body = await self.ask("POST", "bookings", self.wish(*devices, **fields))
        assert status == (200 if fields.get("dry_run") else 201), body
        return list(body)

    async def refused(
        self, method: str, path: str, body: Any = None, *, status: int, code: str, at: str | None = None
    ) -> dict[str, Any]:
        """Ask for something that is refused, and check how."""
        answered, answer = await self.ask(method, path, body)
        assert (answered, answer["error"]["code"]) == (status, code), answer
        assert answer["error"].get("path") == at, answer
        return dict(answer["error"])

    @staticmethod
    def wish(*devices: tuple[str, str], **fields: Any) -> dict[str, Any]:
        named = [{"node_id": node, "uuid": uuid} for node, uuid in devices]
        return {**({"devices": named} if named else {}), "end": "2h", **fields}


class BookingHub:
    """The hub, and how to add people."""

    def __init__(self, hub: Hub, session: aiohttp.ClientSession) -> None:
        self.hub, self.session = hub, session
        self.nobody = Booker(hub, session, None, None)

    async def person(
        self, name: str, role: Role = "member", *groups: str, scopes: tuple[TokenScope, ...] | None = None
    ) -> Booker:
        """Make an account with a token."""
        people, now = self.hub.records.people, self.hub.clock.wall()
        account = await asyncio.to_thread(
            people.create_account,
            name=name,
            display_name=name.title(),
            role=role,
            groups=groups,
            now=now,
            by=BY,
        )
        allowed = {"viewer": ALL[:1], "member": ALL[:2], "admin": ALL}[role]
        token = await asyncio.to_thread(
            create_token,
            people,
            account,
            title="test",
            scopes=allowed if scopes is None else scopes,
            days=1,
            now=now,
            by=BY,
        )
        await self.hub._entered.identity.refresh()
        return Booker(self.hub, self.session, token.secret, account.id)

    async def report(self, name: str, report: Report) -> None:
        """Let a node report, and wait for the tick that shows it."""
        if not self.hub.fleet.has_node(name):
            await self.hub.admit(name)
        self.hub.fleet.accept_report(name, report)
        tick = self.hub.fleet.tick_number
        await eventually(lambda: self.hub.fleet.tick_number > tick + 1)


@contextlib.asynccontextmanager
async def booking_hub(state_dir: Path, **options: Any) -> AsyncIterator[BookingHub]:
    """A hub with the nodes n1 (GPU-0 to GPU-3) and n2 (GPU-0, GPU-1)."""
    async with running_hub(state_dir, **options) as hub, aiohttp.ClientSession(hub.url) as session:
        lab = BookingHub(hub, session)
        await lab.report("n1", report_of(*(gpu(index) for index in range(4))))
        await lab.report("n2", report_of(gpu(0), gpu(1)))
        yield lab
