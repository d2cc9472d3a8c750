"""The examples for nginx and Caddy, each with the real server before a real hub."""

from __future__ import annotations

import base64
import itertools
import json
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
import pytest

from e2e.hub_process import HubProcess, Node
from e2e.reports import gpu, report, working
from support.front_doors import (
    FILES,
    OLD_CADDY_WITH_STAR,
    FrontDoor,
    ProxyName,
    front_door,
    old_front_door,
)
from support.running import eventually, running

PASSWORD = "correct horse battery"
LIVE_SECONDS = 2.0
CONFIG = """
[hub]
public = "read"
tick_seconds = 0.2
trusted_proxies = ["127.0.0.1"]
[login.proxy]
networks = ["127.0.0.1"]
[history]
enabled = false
"""
"""The hub would believe the proxy whom it names: what is not to be believed has to end at the proxy."""
FORGED = {"X-Remote-User": "mallory"}
SPELLINGS = (
    FORGED,
    {"X_Remote_User": "mallory"},
    {"x_remote-user": "mallory"},
    {"X-Remote_User": "mallory"},
    {**FORGED, "X_Remote_User": "mallory"},
)


def basic(name: str, password: str) -> dict[str, str]:
    """Give what a browser sends after it has asked for a password."""
    return {"Authorization": "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()}


_MEMORY_GIB = itertools.count(21)  # no number twice: each is told on the stream once
ALICE = basic("alice", "alice's word")


@pytest.fixture(scope="module")
def hubs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, HubProcess]]:
    """Run a hub at the root and one below a path."""
    found = {
        path: HubProcess(tmp_path_factory.mktemp("hub"), base_path=path, config=CONFIG)
        for path in ("/", "/gpus/")
    }
    for hub in found.values():
        hub.administer("account", "create", "ada", "--password-file", "-", stdin=PASSWORD)
        hub.launch()
    for hub in found.values():
        hub.wait_until_it_answers()
    yield found
    for hub in found.values():
        hub.kill()


@pytest.fixture(scope="module", params=[pair for pair in FILES if pair[1] != "login"], ids="-".join)
def scene(
    request: pytest.FixtureRequest, hubs: dict[str, HubProcess], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[FrontDoor, HubProcess]]:
    proxy, layout = request.param
    hub = hubs["/gpus/" if layout == "subpath" else "/"]
    with front_door(proxy, layout, tmp_path_factory.mktemp(proxy) / layout, hub.url) as door:
        yield door, hub


@pytest.fixture(scope="module")
def door(scene: tuple[FrontDoor, HubProcess]) -> FrontDoor:
    return scene[0]


@pytest.fixture(scope="module", params=["nginx", "caddy"])
def login_door(
    request: pytest.FixtureRequest, hubs: dict[str, HubProcess], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[FrontDoor]:
    proxy: ProxyName = request.param
    folder = tmp_path_factory.mktemp(proxy) / "login"
    with front_door(proxy, "login", folder, hubs["/"].url, {"alice": "alice's word"}) as opened:
        yield opened


def test_everyone_is_led_to_https_and_to_the_page(door: FrontDoor) -> None:
    plain = door.ask("?usage=1", url=door.http_url)
    assert plain.status == 308
    assert plain.headers["Location"].startswith("https://localhost")
    assert plain.headers["Location"].endswith(f"{door.base_path}?usage=1")
    page = door.ask("")
    assert page.status == 200
    assert b"<title>gpuherd" in page.body
    if door.base_path != "/":
        assert (bare := door.ask(door.base_path.rstrip("/"))).status == 308
        assert bare.headers["Location"].endswith(door.base_path)


def test_nothing_outside_the_base_path_reaches_the_hub(door: FrontDoor) -> None:
    if door.base_path == "/":
        pytest.skip("everything is the hub's")
    for path in ("/", "/api/v1/health", "/gpusx/api/v1/health", "/gpus/../api/v1/health"):
        assert door.ask(path).status == 404, path
    for path in ("/gpus/..%2fapi/v1/health", "/gpus/%2e%2e/api/v1/health", "/gpus//api/v1/accounts"):
        assert door.ask(path).status in (301, 308, 400, 401, 403, 404), path


@pytest.mark.promise("proxy-examples-overwrite")
def test_names_that_a_client_makes_up_end_at_the_proxy(door: FrontDoor) -> None:
    assert [door.account(headers) for headers in SPELLINGS] == [None] * len(SPELLINGS)


def test_logging_in_makes_a_cookie_for_https_only(door: FrontDoor) -> None:
    form = json.dumps({"name": "ada", "password": PASSWORD}).encode()
    entered = door.ask("api/v1/session", {"Content-Type": "application/json"}, body=form)
    assert entered.status == 201, entered
    cookie = entered.headers["Set-Cookie"]
    assert "Secure" in cookie
    assert door.account({"Cookie": cookie.partition(";")[0]}) == "ada"
    foreign = {"Content-Type": "application/json", "Origin": "https://evil.example.org"}
    assert door.ask("api/v1/session", foreign, body=form).status == 403


def test_reports_up_to_a_mebibyte_pass_and_larger_ones_do_not(scene: tuple[FrontDoor, HubProcess]) -> None:
    door, hub = scene
    node = hub.join(f"large-{time.monotonic_ns()}")
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {node.credential}"}
    body = msgspec.json.encode(report([])).ljust(2**20)
    assert door.ask("api/v1/reports", headers, body=body).status == 202
    # Caddy says 502 if the hub has hung up on it before it has noticed by itself.
    assert door.ask("api/v1/reports", headers, body=body + b" ").status in (413, 502)


def test_what_a_node_reports_is_on_the_stream_at_once(scene: tuple[FrontDoor, HubProcess]) -> None:
    door, hub = scene
    node = hub.join(f"streamed-{time.monotonic_ns()}")
    with door.asked("api/v1/stream", {"Accept": "text/event-stream"}) as stream:
        assert stream.status == 200
        while not stream.readline().startswith(b"data:"):
            pass  # the snapshot
        for _ in range(2):  # so that a full buffer cannot be what let the first one through
            memory_gib = next(_MEMORY_GIB)
            sent = time.monotonic()
            _report(door, node, memory_gib)
            while f"{memory_gib * 1024}".encode() not in stream.readline():
                assert time.monotonic() - sent < LIVE_SECONDS
            assert time.monotonic() - sent < LIVE_SECONDS


def _report(door: FrontDoor, node: Node, memory_gib: int) -> None:
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {node.credential}"}
    body = msgspec.json.encode(report([(gpu(0), working(0.5, memory_gib))]))
    assert door.ask("api/v1/reports", headers, body=body).status == 202


def test_an_agent_joins_and_reports_through_the_proxy(
    scene: tuple[FrontDoor, HubProcess], tmp_path: Path
) -> None:
    _let_an_agent_report(*scene, tmp_path)


@pytest.mark.parametrize("proxy", ["nginx", "caddy"])
def test_websockets_pass_through_the_old_readmes_blocks(
    proxy: ProxyName, hubs: dict[str, HubProcess], tmp_path: Path
) -> None:
    """nginx's as it is, and Caddy's with the star without which Caddy 2 passes on no more than /gpus."""
    hub = hubs["/gpus/"]
    port = urlsplit(hub.url).port
    assert port is not None
    with old_front_door(proxy, tmp_path / "proxy", port, caddy_site=OLD_CADDY_WITH_STAR) as door:
        _let_an_agent_report(door, hub, tmp_path)


def _let_an_agent_report(door: FrontDoor, hub: HubProcess, tmp_path: Path) -> None:
    name = f"node-{time.monotonic_ns()}"
    (tmp_path / "token").write_text(hub.administer("token", "create"))
    (tmp_path / "gpuherd.toml").write_text(
        f'[agent]\nhub_url = "{door.url}"\ntls_ca_file = "{door.authority_file}"\nnode_name = "{name}"\n'
        f'join_token_file = "{tmp_path}/token"\nstate_dir = "{tmp_path}/state"\ncollectors = []\n'
    )

    def state() -> str | None:
        nodes = door.ask("api/v1/nodes").json()
        return next((str(node["state"]) for node in nodes if node["name"] == name), None)

    with running("agent", "--config", str(tmp_path / "gpuherd.toml"), log=tmp_path / "agent.log"):
        eventually(state, lambda seen: seen == "live")


def test_the_proxy_asks_for_the_password_and_says_who_it_is(login_door: FrontDoor) -> None:
    assert login_door.ask("").status == 401
    assert login_door.ask("", basic("alice", "wrong")).status == 401
    assert login_door.account(ALICE) == "alice"
    for forged in SPELLINGS:
        assert login_door.ask("api/v1/session", forged).status == 401
        assert login_door.account(ALICE | forged) == "alice"


def test_nodes_and_scripts_need_no_password_and_are_nobody_else(login_door: FrontDoor) -> None:
    bearer = {"Authorization": "Bearer ght_nobody"}
    assert login_door.ask("api/v1/account/tokens", bearer).status == 401
    assert b"GPUs" not in login_door.ask("api/v1/account/tokens", bearer).body
    for forged in SPELLINGS:
        answer = login_door.ask("api/v1/fleet", bearer | forged)
        assert answer.status in (200, 401)
        assert b"mallory" not in answer.body
    # A name of which nobody has checked the password must not count where none is asked for.
    kind = {"Content-Type": "application/json", **basic("mallory", "made up")}
    assert login_door.ask("api/v1/enroll", kind, body=b'{"token": "none", "hostname": "x"}').status == 403
    assert login_door.ask("api/v1/calendar/none.ics", basic("mallory", "made up")).status == 404
    assert login_door.account(ALICE) == "alice"
