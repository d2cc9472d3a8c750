"""Who sees what of a running hub: each class over HTTP, one's own command lines, and the audit log."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from gpuherd.api.hub import Hub
from gpuherd.api.settings import HubSettings
from gpuherd.model.hosts import HostFacts, HostSample
from gpuherd.model.processes import Process, ProcessSample, ProcessTable, ProcessUse, UseSample
from gpuherd.model.reports import NodeFacts, Report, Sample
from gpuherd.wiring.config import Config
from gpuherd.wiring.outfit import ConfiguredOutfit
from support.herd import WORKING, gpu
from support.hub import eventually, running_hub
from support.people import add_account, add_session, add_token, bearer, cookie, refresh
from support.running import PATIENCE_SECONDS

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
    async with http.get("api/v1/stream", headers=headers) as response, asyncio.timeout(PATIENCE_SECONDS):
        assert response.status == 200
        for _ in range(count):
            block = (await response.content.readuntil(b"\n\n")).decode()
            fields = dict(line.split(": ", 1) for line in block.strip().splitlines())
            found.append((fields["event"], json.loads(fields["data"])))
    return found


def commands(node: dict[str, Any]) -> list[str | None]:
    return [process["command"] for device in node["devices"] for process in device["processes"]]


@pytest.mark.promise("command-lines-for-owners")
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
@pytest.mark.promise("pseudonyms-in-public")
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


READ = ("fleet", "nodes", "nodes/n1", "gpus", "users", "fleet/glance", "bookings")


async def read_all(http: aiohttp.ClientSession, headers: dict[str, str]) -> tuple[set[int], bytes]:
    statuses, bodies = set(), b""
    for path in READ:
        async with http.get(f"api/v1/{path}", headers=headers) as response:
            statuses.add(response.status)
            bodies += await response.read() if response.status == 200 else b""
    return statuses, bodies


def told_by_proxy(addresses: str) -> dict[str, str]:
    return {"X-Forwarded-For": addresses}


@pytest.mark.promise("names-for-listed-networks")
def test_names_are_for_clients_in_the_listed_networks_and_a_proxy_brings_nobody_in(tmp_path: Path) -> None:
    async def story() -> None:
        async with (
            running_hub(
                tmp_path,
                public="names",
                public_networks=("192.168.0.0/24", "127.0.0.0/8"),
                trusted_proxies=("127.0.0.1",),
            ) as hub,
            aiohttp.ClientSession(hub.url) as http,
        ):
            await fill(hub)
            root = cookie(add_session(hub, add_account(hub, "root", "admin")).secret)
            await refresh(hub)
            inside = told_by_proxy("203.0.113.5, 192.168.0.7")
            for _ in range(2):  # what is made for one class is not given to another
                statuses, bodies = await read_all(http, inside)
                assert statuses == {200}
                assert all(user.encode() in bodies for user in USERS)
                for private in ("secret", "job-of", "Some Linux", "machine", "python"):
                    assert private.encode() not in bodies, private
                assert b"bob-secret.py" in (await read_all(http, root))[1]
            ((_, snapshot),) = await first_events(http, inside, 1)
            assert {process["user"] for process in snapshot["nodes"][0]["processes"]} == {*USERS}
            assert all("command" not in process for process in snapshot["nodes"][0]["processes"])
            assert not any(word in json.dumps(snapshot) for word in ("python", "secret", "job-of"))
            async with http.get("api/v1/session", headers=inside) as response:
                assert (await response.json())["privacy"] == "names"
            async with http.post("api/v1/bookings", headers=inside, json={}) as response:
                assert response.status == 401
            for outside in (
                {},  # the proxy itself, whose address is in a listed network
                told_by_proxy("203.0.113.5"),
                told_by_proxy("192.168.0.7, 203.0.113.5"),
                told_by_proxy("192.168.0.7, 127.0.0.1, unknown"),
                told_by_proxy("127.0.0.1"),
                {"Forwarded": "for=192.168.0.7"},
                {"X-Real-IP": "192.168.0.7"},
            ):
                assert await read_all(http, outside) == ({401}, b""), outside
            await eventually(lambda: len(hub.records.audit.search(action="names.shown")) == 1)
            (entry,) = hub.records.audit.search(action="names.shown")
            assert (entry.who, entry.detail) == ("hub", "without a login, to 192.168.0.0/24, 127.0.0.0/8")

    asyncio.run(story())


def test_the_page_for_a_proxy_that_passes_on_one_address_shows_each_class_its_own(tmp_path: Path) -> None:
    config = Config(hub=HubSettings(state_dir=tmp_path))

    async def story() -> None:
        async with (
            running_hub(
                tmp_path,
                hub_options={"outfit": ConfiguredOutfit(config)},
                base_path="/gpus/",
                public="names",
                public_networks=("192.168.0.0/24",),
                trusted_proxies=("127.0.0.1",),
            ) as hub,
            aiohttp.ClientSession(hub.url) as http,
        ):
            await fill(hub)
            inside, outside = told_by_proxy("192.168.0.7"), told_by_proxy("203.0.113.5")
            async with http.get("/gpus?one-page", headers=inside) as response:
                text = await response.text()
                assert (response.status, response.headers["Cache-Control"]) == (200, "no-store")
            assert all(user in text for user in USERS)
            for private in ("secret", "job-of", "Some Linux", "machine", "python"):
                assert private not in text, private
            async with http.get("/gpus?one-page", headers=outside) as response:
                text = await response.text()
                assert response.status == 401
            assert not any(user in text for user in USERS)

    asyncio.run(story())


def test_a_proxy_that_is_not_listed_brings_nobody_in_either(tmp_path: Path) -> None:
    async def story() -> None:
        async with (
            running_hub(tmp_path, public="names", public_networks=("127.0.0.0/8",)) as hub,
            aiohttp.ClientSession(hub.url) as http,
        ):
            await fill(hub)
            assert (await read_all(http, {}))[0] == {200}
            for headers in (told_by_proxy("127.0.0.1"), {"Via": "1.1 cache"}, {"X-Real-IP": "127.0.0.1"}):
                assert await read_all(http, headers) == ({401}, b""), headers

    asyncio.run(story())
