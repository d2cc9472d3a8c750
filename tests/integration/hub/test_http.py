"""The HTTP side on a real server: one error shape, caps, hosts and origins, base path, the page."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest
import yarl
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpuherd.api.enrolling import open_enrolment
from gpuherd.api.hub import Hub
from gpuherd.model.hosts import HostFacts
from gpuherd.model.reports import NodeFacts, Report, Sample
from support.herd import WORKING, gpu
from support.hub import eventually, running_hub
from support.running import PATIENCE_SECONDS

Story = Callable[[Hub, aiohttp.ClientSession], Awaitable[None]]


def play(state_dir: Path, story: Story, **options: Any) -> None:
    """Run a hub and tell a story against it."""

    async def run() -> None:
        async with running_hub(state_dir, **options) as hub, aiohttp.ClientSession(hub.url) as session:
            await story(hub, session)

    asyncio.run(run())


async def error_of(response: aiohttp.ClientResponse) -> dict[str, Any]:
    """Check the one error shape and give what is in it."""
    assert response.content_type == "application/json"
    body = await response.json()
    assert body.keys() == {"error"}
    assert body["error"].keys() - {"path"} == {"code", "message"}
    assert "Traceback" not in body["error"]["message"]
    return dict(body["error"])


def report() -> Report:
    return Report(
        facts=NodeFacts(host=HostFacts(hostname="script"), devices=(gpu(0),)),
        sample=Sample(time=1.0, devices=(WORKING,)),
    )


def test_a_join_token_buys_a_credential_that_opens_the_door(tmp_path: Path) -> None:
    async def story(hub: Hub, http: aiohttp.ClientSession) -> None:
        token = open_enrolment(hub.settings).create_token(now=hub.clock.wall(), uses=2)
        body = {"token": token, "hostname": "gpu-01.example", "name": "The big one"}
        async with http.post("api/v1/enroll", json=body) as response:
            assert response.status == 201
            first = await response.json()
        assert first["node_id"] == "the-big-one"
        async with http.post("api/v1/enroll", json=body) as response:
            assert response.status == 409
            assert "gpuherd node remove the-big-one" in (await error_of(response))["message"]
        # The failed attempt has not used up the token.
        async with http.post(
            "api/v1/enroll", json={"token": token, "hostname": "gpu-01.example"}
        ) as response:
            assert (await response.json())["node_id"] == "gpu-01.example"
        async with http.post("api/v1/enroll", json={"token": token, "hostname": "gpu-02"}) as response:
            assert response.status == 403
            assert (await error_of(response))["code"] == "token_invalid"
        headers = {"Authorization": f"Bearer {first['credential']}", "Content-Type": "application/json"}
        async with http.post(
            "api/v1/reports", data=msgspec.json.encode(report()), headers=headers
        ) as response:
            assert response.status == 202
            assert await response.json() == {"node_id": "the-big-one"}
        await eventually(lambda: [d.availability.state for d in hub.fleet.devices()] == ["busy"])
        for path, count in {
            "gpus": 1,
            "gpus?state=busy&state=free": 1,
            "gpus?state=free": 0,
            "gpus?node=x": 0,
        }.items():
            async with http.get(f"api/v1/{path}") as response:
                assert len(await response.json()) == count, path
        async with http.get("api/v1/nodes/the-big-one") as response:
            assert (await response.json())["devices"][0]["sample"]["utilization_gpu"] == 0.9
        for path in ("fleet", "nodes", "users", "health"):
            async with http.get(f"api/v1/{path}") as response:
                assert response.status == 200, path
                assert response.headers["cache-control"] == "no-store"
                assert response.headers["x-content-type-options"] == "nosniff"

    play(tmp_path, story)


@pytest.mark.promise("only-digests")
def test_secrets_are_nowhere_in_the_state_folder(tmp_path: Path) -> None:
    async def story(hub: Hub, http: aiohttp.ClientSession) -> None:
        token = open_enrolment(hub.settings).create_token(now=hub.clock.wall())
        async with http.post("api/v1/enroll", json={"token": token, "hostname": "a"}) as response:
            credential = (await response.json())["credential"]
        assert len(credential) >= 43
        kept = b"".join([file.read_bytes() for file in tmp_path.iterdir()])  # noqa: ASYNC240 - a few kilobytes
        assert token.encode() not in kept
        assert credential.encode() not in kept
        assert (tmp_path / "records.sqlite").stat().st_mode & 0o077 == 0

    play(tmp_path, story)


def test_failed_enrolments_are_limited(tmp_path: Path) -> None:
    async def story(hub: Hub, http: aiohttp.ClientSession) -> None:
        statuses = []
        for _ in range(25):
            async with http.post("api/v1/enroll", json={"token": "ghj_no", "hostname": "a"}) as response:
                statuses.append(response.status)
        assert statuses == [403] * 20 + [429] * 5
        assert response.headers["retry-after"] == "30"

    play(tmp_path, story)


JSON = {"Content-Type": "application/json"}
BAD_REQUESTS: list[tuple[str, str, dict[str, Any], int, str]] = [
    ("GET", "api/v1/nothing", {}, 404, "not_found"),
    ("GET", "api/", {}, 404, "not_found"),
    ("GET", "nothing.js", {}, 404, "not_found"),
    ("DELETE", "api/v1/fleet", {}, 405, "method_not_allowed"),
    ("POST", "api/v1/stream", {}, 405, "method_not_allowed"),
    ("POST", "", {}, 405, "method_not_allowed"),
    ("GET", "api/v1/agent", {}, 426, "upgrade_required"),
    ("GET", "api/v1/nodes/none", {}, 404, "unknown_node"),
    ("GET", "api/v1/nodes/none/recent", {}, 404, "unknown_node"),
    ("GET", "api/v1/gpus?state=purple", {}, 400, "invalid_request"),
    ("POST", "api/v1/enroll", {"data": b"{", "headers": JSON}, 400, "invalid_request"),
    ("POST", "api/v1/enroll", {"data": b""}, 400, "invalid_request"),
    ("POST", "api/v1/enroll", {"data": b"[" * 8_192, "headers": JSON}, 400, "invalid_request"),
    ("POST", "api/v1/enroll", {"data": b"[" * 8_193, "headers": JSON}, 413, "body_too_large"),
    ("POST", "api/v1/setup", {"data": b"[" * 8_193, "headers": JSON}, 413, "body_too_large"),
    ("POST", "api/v1/session", {"data": b"[" * 8_193, "headers": JSON}, 413, "body_too_large"),
    ("POST", "api/v1/session", {"data": b'{"name":"\xff"}', "headers": JSON}, 400, "invalid_request"),
    ("POST", "api/v1/enroll", {"json": {"token": 7, "hostname": "a"}}, 400, "invalid_request"),
    ("POST", "api/v1/enroll", {"json": {"token": "ghj_x", "hostname": "a" * 129}}, 400, "invalid_request"),
    ("POST", "api/v1/enroll", {"json": {"token": "nonsense", "hostname": "a"}}, 403, "token_invalid"),
    ("POST", "api/v1/enroll", {"json": {"token": "ghj_\x00\ud800", "hostname": "a"}}, 400, "invalid_request"),
    ("POST", "api/v1/reports", {"json": {}}, 401, "unauthorized"),
    (
        "POST",
        "api/v1/reports",
        {"data": b"x", "headers": {"Content-Encoding": "gzip"}},
        415,
        "unsupported_encoding",
    ),
]


def test_every_bad_request_gets_the_one_error_shape(tmp_path: Path) -> None:
    async def story(_: Hub, http: aiohttp.ClientSession) -> None:
        for method, path, options, status, code in BAD_REQUESTS:
            async with http.request(method, path, **options) as response:
                error = await error_of(response)
                assert (response.status, error["code"]) == (status, code), (method, path, error)

    play(tmp_path, story)


@pytest.mark.parametrize(
    "media_type",
    ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "a/b", ""],
)
def test_a_body_that_foreign_pages_could_send_is_not_read(tmp_path: Path, media_type: str) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        yield b"{}"

    async def story(_: Hub, http: aiohttp.ClientSession) -> None:
        for method, path in (
            ("POST", "session"),
            ("POST", "enroll"),
            ("PATCH", "account"),
            ("DELETE", "session"),
        ):
            for body in (b'{"name": "ada", "password": "x"}', chunks()):
                headers = {"Content-Type": media_type}
                async with http.request(method, f"api/v1/{path}", data=body, headers=headers) as response:
                    error = await error_of(response)
                    assert (response.status, error["code"]) == (415, "unsupported_media_type")
                    assert "application/json" in error["message"]

    play(tmp_path, story)


def test_a_request_without_a_body_says_nothing_of_its_kind(tmp_path: Path) -> None:
    async def story(_: Hub, http: aiohttp.ClientSession) -> None:
        async with http.delete("api/v1/session") as response:
            assert response.status == 204
        async with http.delete("api/v1/session", data=b"", headers={"Content-Length": "0"}) as response:
            assert response.status == 204
        body = {"token": "ghj_x", "hostname": "a"}
        json_in_words = {"Content-Type": "Application/JSON; charset=utf-8"}
        async with http.post("api/v1/enroll", data=json.dumps(body), headers=json_in_words) as response:
            assert response.status == 403

    play(tmp_path, story)


def test_bad_reports_name_the_place(tmp_path: Path) -> None:
    async def story(hub: Hub, http: aiohttp.ClientSession) -> None:
        credential = (await hub.admit("a")).credential
        headers = {"Authorization": f"Bearer {credential}", **JSON}
        good = json.loads(msgspec.json.encode(report()))

        async def refused(body: bytes) -> tuple[int, str, str]:
            async with http.post("api/v1/reports", data=body, headers=headers) as response:
                error = await error_of(response)
                return response.status, error["code"], error["message"] + str(error.get("path"))

        wrong_type = {**good, "sample": {**good["sample"], "time": "noon"}}
        status, code, text = await refused(json.dumps(wrong_type).encode())
        assert (status, code) == (400, "invalid_request")
        assert "time" in text
        status, code, _ = await refused(json.dumps(good).replace("0.9", "NaN").encode())
        assert (status, code) == (400, "invalid_request")
        status, code, _ = await refused(json.dumps(good).replace("0.9", "7e300").encode())
        assert (status, code) == (400, "invalid_request")
        misaligned = {**good, "sample": {**good["sample"], "devices": []}}
        status, code, text = await refused(json.dumps(misaligned).encode())
        assert (status, code) == (400, "report_misaligned")
        assert "sample.devices has 0 entries" in text
        status, code, _ = await refused(b'{"facts":' + b'{"host":' * 50_000)
        assert (status, code) == (400, "invalid_request")

    play(tmp_path, story)


@pytest.mark.parametrize("framing", ["Content-Length: 10000000", "Transfer-Encoding: chunked"])
def test_a_body_over_a_megabyte_is_turned_away_before_it_has_arrived(tmp_path: Path, framing: str) -> None:
    async def story(hub: Hub, http: aiohttp.ClientSession) -> None:
        credential = (await hub.admit("a")).credential
        url = yarl.URL(hub.url)
        reader, writer = await asyncio.open_connection(url.host, url.port)
        writer.write(
            f"POST /api/v1/reports HTTP/1.1\r\nHost: {url.authority}\r\nContent-Type: application/json\r\n"
            f"Authorization: Bearer {credential}\r\n{framing}\r\n\r\n".encode()
        )
        chunk = b" " * 65_536
        for _ in range(20):  # 1.3 of the 10 MB
            writer.write(b"10000\r\n%b\r\n" % chunk if "chunked" in framing else chunk)
        async with asyncio.timeout(PATIENCE_SECONDS):
            head = await reader.readuntil(b"\r\n\r\n")
            body = await reader.readexactly(int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0]))
        assert head.startswith(b"HTTP/1.1 413")
        assert json.loads(body)["error"]["code"] == "body_too_large"
        writer.close()
        async with http.get("api/v1/health") as response:
            assert response.status == 200

    play(tmp_path, story)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Host": "evil.example:8470"}, 421),
        ({"Host": "localhost.evil.example"}, 421),
        ({"Host": "127.0.0.1.evil.example"}, 421),
        ({"Host": ""}, 421),
        ({"Host": "LOCALHOST:1"}, 200),
        ({"Host": "192.0.2.7"}, 200),
        ({"Host": "[::1]:8470"}, 200),
        ({"Host": "gpus.example:443"}, 200),
        ({"Host": "[127.0.0.1]evil.example"}, 421),
        ({"Host": "localhost:80@evil.example"}, 421),
        ({"Host": "localhost:evil.example"}, 421),
    ],
)
@pytest.mark.promise("foreign-host-refused")
def test_only_known_host_names_are_served(tmp_path: Path, headers: dict[str, str], status: int) -> None:
    async def story(_: Hub, http: aiohttp.ClientSession) -> None:
        for path in ("", "api/v1/fleet", "api/v1/stream"):
            async with http.get(path, headers=headers) as response:
                assert response.status == status, path

    play(tmp_path, story, allowed_hosts=("gpus.example",))


@pytest.mark.promise("bodies-have-a-budget")
@pytest.mark.parametrize("name", ["session", "setup", "enroll"])
def test_another_spelling_of_an_address_has_the_same_limit(tmp_path: Path, name: str) -> None:
    async def story(hub: Hub, http: aiohttp.ClientSession) -> None:
        body = json.dumps({"name": "x" * 20_000})
        headers = {"Content-Type": "application/json"}
        for spelled in ("v1/{}", "v1/{}/", "v1/{}//", "v1//{}", "/v1/{}", "v1/{}%2F"):
            address = yarl.URL(f"{hub.url}api/{spelled.format(name)}", encoded=True)
            async with http.post(address, data=body, headers=headers) as response:
                assert (response.status, (await error_of(response))["code"]) == (413, "body_too_large"), (
                    spelled
                )

    play(tmp_path, story)


@pytest.mark.promise("own-origin-only")
def test_foreign_pages_can_neither_write_nor_stream(tmp_path: Path) -> None:
    from websockets.asyncio.client import connect
    from websockets.exceptions import InvalidStatus

    async def story(hub: Hub, http: aiohttp.ClientSession) -> None:
        foreign: list[dict[str, str]] = [
            {"Origin": "https://evil.example"},
            {"Origin": "null"},
            {"Origin": hub.url.rstrip("/").replace("http", "ftp")},
            {"Origin": hub.url.rstrip("/") + "0"},
            {"Sec-Fetch-Site": "cross-site"},
        ]
        for headers in foreign:
            async with http.get("api/v1/stream", headers=headers) as response:
                assert (response.status, (await error_of(response))["code"]) == (403, "foreign_origin")
            async with http.post("api/v1/enroll", json={}, headers=headers) as response:
                assert (response.status, (await error_of(response))["code"]) == (403, "foreign_origin")
            with pytest.raises(InvalidStatus) as caught:
                await connect(
                    hub.url.replace("http", "ws") + "api/v1/agent", additional_headers=headers, proxy=None
                )
            assert caught.value.response.status_code == 403
        own = {"Origin": hub.url.rstrip("/"), "Sec-Fetch-Site": "same-origin"}
        async with http.get("api/v1/stream", headers=own) as response:
            assert response.status == 200

    play(tmp_path, story)


def test_the_hub_lives_below_its_base_path(tmp_path: Path) -> None:
    page = tmp_path / "page"
    page.mkdir()
    (page / "index.html").write_text("<html><head></head></html>")

    async def story(hub: Hub, http: aiohttp.ClientSession) -> None:
        root = yarl.URL(hub.url).origin()
        assert hub.url == f"{root}/gpus/"
        for path, status in {
            "/gpus/": 200,
            "/gpus/api/v1/fleet": 200,
            "/gpus/index": 200,
            # A proxy that cuts the path off, and the bare path: no redirect, which a proxy might lead back.
            "/": 200,
            "/index": 200,
            "/gpus": 200,
            "/api/v1/fleet": 200,
            "/gpusx/": 404,
            "/gpusx/api/v1/fleet": 404,
            "/gpus//api/v1/fleet": 404,
            "/gpus/gpus/api/v1/fleet": 404,
            "/gpus/../api/v1/fleet": 404,
        }.items():
            async with http.get(yarl.URL(f"{root}{path}", encoded=True), allow_redirects=False) as response:
                assert response.status == status, path
                if path.rstrip("/") in ("", "/index", "/gpus", "/gpus/index"):
                    assert '<base href="/gpus/">' in await response.text()

    play(tmp_path / "state", story, base_path="/gpus/", hub_options={"page_folder": page})


@pytest.mark.promise("page-policy")
def test_the_page_is_cached_checked_and_cannot_be_left(tmp_path: Path) -> None:
    page = tmp_path / "page"
    (page / "assets").mkdir(parents=True)
    (page / "index.html").write_text("<html><head><title>t</title></head></html>")
    (page / "assets/index-BMW3mBEo.js").write_text("export const herd = 1;\n" * 100)
    (tmp_path / "secret.txt").write_text("secret")

    async def story(hub: Hub, http: aiohttp.ClientSession) -> None:
        async with http.get("") as response:
            assert response.headers["cache-control"] == "no-cache"
            policy = response.headers["content-security-policy"]
            assert "unsafe" not in policy
            assert "frame-ancestors 'none'" in policy
            tag = response.headers["etag"]
        async with http.get("", headers={"If-None-Match": tag}) as response:
            assert (response.status, await response.read()) == (304, b"")
        async with http.head("") as response:
            assert (response.status, await response.read()) == (200, b"")
        async with http.get("assets/index-BMW3mBEo.js") as response:
            assert "immutable" in response.headers["cache-control"]
            assert response.headers["content-type"].startswith("text/javascript")
            assert response.headers["content-encoding"] == "gzip"
            assert "herd = 1" in await response.text()
        for trick in (
            "../secret.txt",
            "..%2fsecret.txt",
            "%2e%2e/secret.txt",
            "assets/..%2f..%2fsecret.txt",
            "/secret.txt",
            "index.html%00.js",
            "%00",
            "assets/",
            "assets",
            "..%5csecret.txt",
            "%ff%fe",
        ):
            async with http.get(yarl.URL(f"{hub.url}{trick}", encoded=True)) as response:
                assert response.status == 404, trick
                await error_of(response)

    play(tmp_path / "state", story, hub_options={"page_folder": page})


def test_a_page_that_was_not_built_says_how_to(tmp_path: Path) -> None:
    async def story(_: Hub, http: aiohttp.ClientSession) -> None:
        async with http.get("") as response:
            assert response.status == 200
            assert "pip install -e" in await response.text()

    play(tmp_path, story, hub_options={"page_folder": tmp_path / "none"})


def test_no_input_makes_the_hub_fail(tmp_path: Path) -> None:
    """Any method, path, query and body on the real server: never a 5xx, always the one shape."""
    names = st.sampled_from(
        ["fleet", "nodes", "gpus", "users", "health", "enroll", "reports", "agent", "openapi.json"]
    )
    tail = st.text(st.characters(codec="utf-8", exclude_characters="#?"), max_size=12)
    value = st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
        max_leaves=12,
    )
    enrolment = st.fixed_dictionaries(
        {}, optional={"token": value, "hostname": value, "name": value, "facts": value, "sample": value}
    )
    body = st.binary(max_size=64) | (enrolment | value).map(lambda v: json.dumps(v).encode())

    async def run() -> None:
        async with running_hub(tmp_path) as hub, aiohttp.ClientSession() as http:
            credential = (await hub.admit("a")).credential
            loop = asyncio.get_running_loop()

            async def send(method: str, path: str, query: str, content: bytes, media: str) -> None:
                url = (
                    yarl.URL(hub.url)
                    .joinpath("api", "v1")
                    .joinpath(path)
                    .with_query({"state": query, "node": query})
                )
                headers = {"Authorization": f"Bearer {credential}", "Content-Type": media}
                async with http.request(method, url, data=content, headers=headers) as response:
                    assert response.status < 500, await response.text()
                    if response.status >= 400 and method != "HEAD":
                        await error_of(response)

            @settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
            @given(
                st.sampled_from(["GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH"]),
                st.tuples(names, tail).map(lambda pair: "/".join(part for part in pair if part.strip("./"))),
                st.sampled_from(["busy", "free"]) | st.text(st.characters(codec="utf-8"), max_size=8),
                body,
                st.sampled_from(
                    ["application/json", "text/plain", "application/msgpack", "multipart/form-data", "a/b;"]
                ),
            )
            def fire(method: str, path: str, query: str, content: bytes, media: str) -> None:
                asyncio.run_coroutine_threadsafe(send(method, path, query, content, media), loop).result(
                    PATIENCE_SECONDS
                )

            await asyncio.to_thread(fire)

    asyncio.run(run())


def test_gzip_of_the_page_is_what_the_browser_gets(tmp_path: Path) -> None:
    page = tmp_path / "page"
    page.mkdir()
    (page / "index.html").write_text("<html><head></head>" + "herd " * 500)

    async def story(_: Hub, http: aiohttp.ClientSession) -> None:
        async with http.get("", headers={"Accept-Encoding": "identity"}) as response:
            plain = await response.read()
            assert "content-encoding" not in response.headers
        async with aiohttp.ClientSession(auto_decompress=False) as raw, raw.get(response.url) as packed:
            assert gzip.decompress(await packed.read()) == plain

    play(tmp_path / "state", story, hub_options={"page_folder": page})
