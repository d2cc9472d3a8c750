"""Who sees what of a running hub: each class over HTTP, one's own command lines, and the audit log."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from gpuherd.api.hub import Hub
from gpuherd.model.hosts import HostFacts, HostSample
from gpuherd.model.processes import Process, ProcessSample, ProcessTable, ProcessUse, UseSample
from gpuherd.model.reports import NodeFacts, Report, Sample
from support.herd import WORKING, gpu
from support.hub import eventually, running_hub
from support.people import add_account, add_session, add_token, bearer, cookie, refresh

USERS = ("ada", "bob")


async def fill(hub: Hub) -> None:
    """Have two people run something on one GPU."""
    await hub.admit("n1")
    hub.accept_report(
        "n1",
        Report(
            facts=NodeFacts(host=HostFacts(hostname="machine", os="Some Linux"), devices=(gpu(0),)),
            sample=Sample(
                time=hub.clock.wall(),
                host=HostSample(),
                devices=(WORKING,),
                processes=(ProcessSample(),) * 2,
                uses=(UseSample(),) * 2,
            ),
            table=ProcessTable(
                processes=tuple(
                    Process(pid=pid, user=user, command=f"python3 {user}-secret.py", job=f"job-of-{user}")
                    for pid, user in enumerate(USERS, 1)
                ),
                uses=(ProcessUse(process=0, device=0), ProcessUse(process=1, device=0)),
            ),
        ),
    )
    await eventually(lambda: hub.fleet.totals().devices["busy"] == 1)


async def first_events(
    http: aiohttp.ClientSession, headers: dict[str, str], count: int
) -> list[tuple[str, Any]]:
    found = []
    async with http.get("api/v1/stream", headers=headers) as response, asyncio.timeout(10):
        assert response.status == 200
        for _ in range(count):
            block = (await response.content.readuntil(b"\n\n")).decode()
            fields = dict(line.split(": ", 1) for line in block.strip().splitlines())
            found.append((fields["event"], json.loads(fields["data"])))
    return found


def commands(node: dict[str, Any]) -> list[str | None]:
    return [process["command"] for device in node["devices"] for process in device["processes"]]


def test_people_read_their_own_command_lines_and_admins_all_of_them(tmp_path: Path) -> None:
    async def story() -> None:
        async with running_hub(tmp_path) as hub, aiohttp.ClientSession(hub.url) as http:
            await fill(hub)
            ada, eve = add_account(hub, "ada"), add_account(hub, "eve", "viewer")
            root = add_account(hub, "root", "admin")
            await refresh(hub)
            full = ["python3 ada-secret.py", "python3 bob-secret.py"]
            for headers, seen in (
                (cookie(add_session(hub, ada).secret), [full[0], "python"]),
                (bearer(add_token(hub, ada)[1]), [full[0], "python"]),
                (cookie(add_session(hub, eve).secret), ["python", "python"]),
                (cookie(add_session(hub, root).secret), full),
                (bearer(add_token(hub, root)[1]), ["python", "python"]),  # it may read, not administer
            ):
                for path, node_of in (
                    ("nodes/n1", lambda body: body),
                    ("nodes", lambda body: body[0]),
                    ("fleet", lambda body: body["nodes"][0]),
                    ("gpus", lambda body: {"devices": body}),
                ):
                    async with http.get(f"api/v1/{path}", headers=headers) as response:
                        assert commands(node_of(await response.json())) == seen
            events = await first_events(http, cookie(add_session(hub, ada).secret), 2)
            assert [name for name, _ in events] == ["snapshot", "own"]
            assert [p["command"] for p in events[0][1]["nodes"][0]["processes"]] == ["python", "python"]
            assert (events[1][1]["pid"], events[1][1]["command"]) == ([1], [full[0]])
            await first_events(http, cookie(add_session(hub, root).secret), 2)
            await eventually(lambda: len(hub.records.audit.search(action="command_lines.read")) == 3)
            entries = hub.records.audit.search(action="command_lines.read")
            assert {entry.subject for entry in entries} == {"n1", "herd", "live view"}
            assert {(entry.who, entry.account_id) for entry in entries} == {("root", root.id)}

    asyncio.run(story())


@pytest.mark.parametrize("public", ["read", "counts", "off"])
def test_without_a_login(tmp_path: Path, public: str) -> None:
    async def story() -> None:
        async with running_hub(tmp_path, public=public) as hub, aiohttp.ClientSession(hub.url) as http:
            await fill(hub)
            statuses, bodies = {}, b""
            for path in ("fleet", "nodes", "nodes/n1", "gpus", "users", "health"):
                async with http.get(f"api/v1/{path}") as response:
                    statuses[path] = response.status
                    bodies += await response.read() if response.status == 200 else b""
            is_shown = public == "read"
            assert statuses.pop("health") == 200, "nodes and monitors ask for it"
            assert {*statuses.values()} == {200 if is_shown else 401}
            if public == "off":
                async with http.get("api/v1/stream") as response:
                    assert response.status == 401
            else:
                ((_, snapshot),) = await first_events(http, {}, 1)
                assert snapshot["totals"]["devices"]["busy"] == 1
                assert len(snapshot["nodes"]) == (1 if is_shown else 0)
                bodies += json.dumps(snapshot).encode()
            for private in (*USERS, "secret", "job-of", "Some Linux", "machine"):
                assert private.encode() not in bodies, private

    asyncio.run(story())


def test_pseudonyms_stay_the_same_over_a_restart(tmp_path: Path) -> None:
    async def story() -> None:
        seen = []
        for _ in range(2):
            async with running_hub(tmp_path, public="read") as hub, aiohttp.ClientSession(hub.url) as http:
                await fill(hub)
                async with http.get("api/v1/users") as response:
                    seen.append({user["user"] for user in await response.json()})
        assert seen[0] == seen[1]
        assert len(seen[0]) == 2

    asyncio.run(story())
