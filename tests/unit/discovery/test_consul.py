"""Consul's addresses and answers, and a Consul that misbehaves."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from gpuherd.discovery.consul import ConsulFinder, finder
from gpuherd.discovery.consul.address import service_address
from gpuherd.discovery.consul.answers import parse_services
from gpuherd.discovery.settings import ConsulSettings
from gpuherd.model.errors import Failed, Misconfigured
from support.complaints import complaint_of


@pytest.mark.parametrize(
    ("settings", "url"),
    [
        (ConsulSettings(url="http://c:8500", service="gpu"), "http://c:8500/v1/catalog/service/gpu"),
        (ConsulSettings(url="https://c/consul/", service="a/b"), "https://c/consul/v1/catalog/service/a%2Fb"),
        (
            ConsulSettings(url="http://[::1]:8500", service="gpu", only_healthy=True),
            "http://[::1]:8500/v1/health/service/gpu?passing=1",
        ),
        (
            ConsulSettings(url="http://c/v1/catalog/service/gpu?dc=pa4&index=7&wait=1m"),
            "http://c/v1/catalog/service/gpu?dc=pa4",
        ),
        (
            ConsulSettings(url="http://c/v1/catalog/service/gpu", only_healthy=True),
            "http://c/v1/health/service/gpu?passing=1",
        ),
        (
            ConsulSettings(url="http://c", service="gpu", tag_name="a&b", datacenter="pa4"),
            "http://c/v1/catalog/service/gpu?tag=a%26b&dc=pa4",
        ),
        (ConsulSettings(url="http://c/hosts.json"), "http://c/hosts.json"),
    ],
)
def test_the_address_that_is_asked(settings: ConsulSettings, url: str) -> None:
    assert service_address(settings).url == url


def test_the_name_tells_service_and_place() -> None:
    address = service_address(ConsulSettings(url="http://c:8500/v1/catalog/service/gpu"))
    assert address.place == "consul gpu at http://c:8500"


@pytest.mark.parametrize(
    ("url", "complaint"),
    [
        ("http://c:8500", "find.service: is missing"),
        ("c:8500", "is not an address; write http://127.0.0.1:8500"),
        ("ftp://c/v1/catalog/service/gpu", "is not an address"),
        ("http://c:port/", "is not an address"),
        ("http://me:hunter2@c/v1/catalog/service/gpu", "use token_file"),
        ("http://c/v1/catalog/service/gpu?token=hunter2", "token_file"),
    ],
)
def test_an_address_that_cannot_be_used_is_refused_without_repeating_secrets(
    url: str, complaint: str
) -> None:
    with pytest.raises(Misconfigured) as caught:
        service_address(ConsulSettings(url=url))
    assert complaint in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_the_catalogue_and_the_health_endpoint() -> None:
    catalogue = [
        {"Node": "gpu02", "Address": "10.0.0.2", "ServiceAddress": "", "ServicePort": 80},
        {"Node": "gpu01", "Address": "10.0.0.1", "ServiceAddress": "10.1.0.1", "ServicePort": 81},
        {"Node": "gpu01", "Address": "10.0.0.1", "ServiceAddress": "10.1.0.1", "ServicePort": 82},
        {"Node": "gpu03"},
    ]
    health = [
        {
            "Node": {"Node": "gpu01", "Address": "10.0.0.1"},
            "Service": {"Address": "10.1.0.1", "Port": 81},
            "Checks": [],
        },
        {"Node": {"Node": "gpu02", "Address": "10.0.0.2"}, "Service": {"Address": "", "Port": 0}},
    ]
    found, complaints = parse_services(msgspec.json.encode(catalogue), "consul", use_service_port=True)
    assert [(target.name, target.address, target.port) for target in found] == [
        ("gpu01", "10.1.0.1", 81),
        ("gpu02", "10.0.0.2", 80),
        ("gpu03", "gpu03", None),
    ]
    assert complaints == ()
    found, _ = parse_services(msgspec.json.encode(health), "consul", use_service_port=True)
    assert [(target.name, target.address, target.port) for target in found] == [
        ("gpu01", "10.1.0.1", 81),
        ("gpu02", "10.0.0.2", None),
    ]
    found, _ = parse_services(msgspec.json.encode(health), "consul", use_node_name=True)
    assert [(target.address, target.port) for target in found] == [("gpu01", None), ("gpu02", None)]


def test_a_hostile_entry_is_left_out_and_the_others_stay() -> None:
    entries = [
        {"Node": "<script>", "Address": "10.0.0.1"},
        {"Node": "gpu\x1b[2J", "Address": "10.0.0.1"},
        {"Node": "ok", "Address": "10.0.0.1"},
        {"Node": "bad", "Address": "-oProxyCommand=x"},
        {"Node": "bad2", "Address": {"x": 1}},
        {"Node": 7},
        {},
        "x",
        None,
    ]
    found, complaints = parse_services(msgspec.json.encode(entries), "consul")
    assert [target.name for target in found] == ["ok"]
    assert len(complaints) == 8
    assert "\x1b" not in "".join(complaints)


@given(st.binary() | st.recursive(st.none() | st.text(), st.lists).map(msgspec.json.encode))
def test_any_answer_gives_targets_or_a_failure(answer: bytes) -> None:
    complaint = complaint_of(lambda: parse_services(answer, "consul"), Failed)
    assert complaint is None or complaint.startswith("consul: ")


def test_an_answer_with_absurdly_many_entries_is_refused_as_a_whole() -> None:
    with pytest.raises(Failed, match="more than 50000"):
        parse_services(msgspec.json.encode([1] * 50_001), "consul")


Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def _with_server(handler: Handler, use: Callable[[str], Awaitable[None]]) -> None:
    async def run() -> None:
        app = web.Application()
        app.router.add_get("/{path:.*}", handler)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        try:
            await use(f"http://{host}:{port}/v1/catalog/service/gpu")
        finally:
            await runner.cleanup()

    asyncio.run(run())


@pytest.mark.parametrize(
    ("status", "kind", "complaint"),
    [
        (302, Misconfigured, 'redirects to "http://elsewhere/"; set find.url to the right address'),
        (403, Misconfigured, "rejects the token (403"),
        (404, Misconfigured, "responds with 404"),
        (429, Failed, "fails (429"),
        (500, Failed, 'fails (500 "No cluster leader")'),
    ],
)
@pytest.mark.promise("no-redirect-followed")
def test_an_answer_that_is_no_list(status: int, kind: type[Exception], complaint: str) -> None:
    async def answer(request: web.Request) -> web.Response:
        assert request.path == "/v1/catalog/service/gpu"  # a redirect is not followed
        return web.Response(
            status=status, text="No cluster\nleader", headers={"Location": "http://elsewhere/"}
        )

    async def use(url: str) -> None:
        consul = ConsulFinder(ConsulSettings(url=url), base=Path())
        with pytest.raises(kind) as caught:
            await consul.find()
        assert complaint in str(caught.value)
        await consul.close()

    _with_server(answer, use)


def test_an_endless_answer_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finder, "MAX_ANSWER_BYTES", 1_000_000)

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        try:
            while True:
                await response.write(b"[" * 65_536)
        except ConnectionError:
            return response

    async def use(url: str) -> None:
        consul = ConsulFinder(ConsulSettings(url=url), base=Path())
        with pytest.raises(Failed, match="larger than 1000000 bytes"):
            await consul.find()
        await consul.close()

    _with_server(answer, use)


def test_nobody_there() -> None:
    async def run() -> None:
        consul = ConsulFinder(ConsulSettings(url="http://127.0.0.1:1", service="gpu"), base=Path())
        with pytest.raises(Failed, match=r"consul gpu at http://127\.0\.0\.1:1: cannot be reached"):
            await consul.find()
        await consul.close()

    asyncio.run(run())


def test_an_index_that_goes_back_starts_afresh() -> None:
    seen: list[str] = []
    indices = iter(["100", "90", "91"])

    async def answer(request: web.Request) -> web.Response:
        seen.append(request.query_string)
        return web.json_response([{"Node": "a"}], headers={"X-Consul-Index": next(indices)})

    async def use(url: str) -> None:
        consul = ConsulFinder(ConsulSettings(url=url, every_seconds=5), base=Path(), jitter=lambda: 0.0)
        await consul.find()
        await consul.wait()  # answered at once with a lower number
        await consul.find()
        await consul.close()

    _with_server(answer, use)
    assert seen == ["", "index=100&wait=5000ms", ""]


def test_a_token_without_shape_is_not_sent(tmp_path: Path) -> None:
    token_file = tmp_path / "token"
    token_file.write_text("two\nlines of hunter2\n")
    settings = ConsulSettings(url="http://127.0.0.1:1", service="gpu", token_file=Path("token"))
    with pytest.raises(Misconfigured, match="does not contain a token") as caught:
        asyncio.run(ConsulFinder(settings, base=tmp_path).find())
    assert "hunter2" not in str(caught.value)
