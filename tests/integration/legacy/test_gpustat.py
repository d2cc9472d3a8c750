"""The exchange of the push tool, byte for byte: nodes POST /, the page GETs /."""

from __future__ import annotations

import asyncio
import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sim.build import COMPILER, SCENARIOS, build_library, simulator_environment

from gpuherd.api.guard import Guard
from gpuherd.api.legacy.gpustat import GpustatApp
from gpuherd.api.legacy.old_login import OldLogin, exposure_of, read_login_file
from gpuherd.collect.scrub import scrub
from gpuherd.fleet.fleet import Fleet
from gpuherd.model.errors import Misconfigured
from gpuherd.sources.settings import GpustatSettings
from support.arrivals import KeptArrivals
from support.herd import WORKING, ManualClock, Speaker, gpu
from support.running import PATIENCE_SECONDS

from .conftest import RawAnswer, exchange, listening

REPOSITORY = Path(__file__).parents[3]
BODY = b"""{
    "hostname": "gpu-node-0",
    "driver_version": "470.82.01",
    "query_time": "2026-11-16T03:40:01.123456",
    "gpus": [
        {
            "index": 0,
            "uuid": "GPU-10fb0fbd-2696-43f3-467f-d280d906a107",
            "name": "NVIDIA GeForce RTX 3090",
            "temperature.gpu": 61,
            "fan.speed": 53,
            "utilization.gpu": 97,
            "utilization.enc": 0,
            "utilization.dec": 0,
            "power.draw": 331,
            "enforced.power.limit": 350,
            "memory.used": 18762,
            "memory.total": 24576,
            "processes": [
                {
                    "username": "ernest",
                    "command": "python",
                    "full_command": [
                        "python",
                        "main.py"
                    ],
                    "gpu_memory_usage": 18753,
                    "cpu_percent": 101.3,
                    "cpu_memory_usage": 5021234176,
                    "pid": 31337
                }
            ]
        }
    ]
}
"""


class Backend:
    """The application with a herd behind it: one node of another way, and whoever posts."""

    def __init__(self, login: OldLogin | None = None, **settings: Any) -> None:
        self.clock = ManualClock()
        self.arrivals = KeptArrivals(taken=("enrolled",))
        self.fleet = Fleet(clock=self.clock)
        self.fleet.add_node("pushed", "pushed")
        speaker = Speaker(self.fleet, self.clock, "pushed")
        speaker.describe(gpu(0))
        speaker.sample(WORKING)
        self.fleet.tick()
        self.app = GpustatApp(
            GpustatSettings(**{"listen": "127.0.0.1:0", "networks": ("127.0.0.0/8",), **settings}),
            self.arrivals,
            fleet_view=self.fleet.view,
            guard=Guard(["gpus.example.org"]),
            scrub=scrub,
            login=login,
            wall=self.clock.wall,
            monotonic=self.clock.monotonic,
        )

    def talk(self, *requests: bytes, source: str = "127.0.0.1") -> list[RawAnswer]:
        async def run() -> list[RawAnswer]:
            async with listening(self.app) as port:
                return [await exchange(port, request, source=source) for request in requests]

        return asyncio.run(run())


def posting(body: bytes = BODY, *lines: str, path: str = "/") -> bytes:
    """What curl sends for the line in the old script."""
    head = [
        f"POST {path} HTTP/1.1",
        "Host: 127.0.0.1:3000",
        "User-Agent: curl/7.81.0",
        "Accept: */*",
        *(lines or ("Content-Type: application/json",)),
        f"Content-Length: {len(body)}",
    ]
    return "\r\n".join([*head, "", ""]).encode() + body


def at(second: int) -> bytes:
    """The same node a little later."""
    return BODY.replace(b"03:40:01", b"03:40:%02d" % second)


def reading(*lines: str, method: str = "GET", host: str = "127.0.0.1:3000", path: str = "/") -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/1.1", f"Host: {host}", *lines, "", ""]).encode()


def error_code(answer: RawAnswer) -> str:
    code: str = json.loads(answer.body)["error"]["code"]
    assert json.loads(answer.body)["error"]["message"]
    return code


def test_the_documented_exchange() -> None:
    backend = Backend()
    posted, read = backend.talk(posting(), reading())
    assert posted.status_line == "HTTP/1.1 200 OK"
    assert posted.headers["content-type"] == "text/plain; charset=utf-8"
    assert posted.body == b"OK"
    assert read.status == 200
    assert read.headers["content-type"] == "application/json; charset=utf-8"
    everything = json.loads(read.body)
    assert set(everything) == {"gpu-node-0", "pushed"}
    assert everything["gpu-node-0"] == {**json.loads(BODY), "ip": "::ffff:127.0.0.1"}
    assert set(everything["pushed"]) == set(everything["gpu-node-0"])
    assert everything["pushed"]["gpus"][0]["utilization.gpu"] == 90
    report = backend.arrivals.nodes["gpu-node-0"].last
    assert report.sample.devices[0].utilization_gpu == 0.97
    assert report.table.processes[0].user == "ernest"
    assert backend.arrivals.ways == {"gpu-node-0": ("gpustat", 4.0)}


def test_a_post_is_read_again_at_once_and_by_the_second() -> None:
    backend = Backend()
    later = at(2).replace(b'"utilization.gpu": 97', b'"utilization.gpu": 12')
    _, first, _, second = backend.talk(posting(), reading(), posting(later), reading())
    assert [json.loads(a.body)["gpu-node-0"]["gpus"][0]["utilization.gpu"] for a in (first, second)] == [
        97,
        12,
    ]


def test_the_same_reading_sent_again_is_no_news() -> None:
    backend = Backend()
    answers = backend.talk(posting(), posting(), posting(), posting(at(2)))
    assert [answer.status for answer in answers] == [200] * 4
    assert len(backend.arrivals.nodes["gpu-node-0"].reports) == 2


def test_the_real_gpustat_and_curl(tmp_path: Path) -> None:
    if shutil.which(COMPILER) is None:
        pytest.skip(f"{COMPILER} is not installed: the simulated libnvidia-ml.so.1 cannot be compiled")
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    environment = simulator_environment(build_library(REPOSITORY / "build" / "sim"), SCENARIOS / "mixed.json")
    gpustat = Path(sys.executable).with_name("gpustat")
    backend = Backend()

    def script(port: int) -> bytes:
        """The line of run-this-on-every-node.sh."""
        line = (
            f"'{gpustat}' --json | tee '{tmp_path}/posted' | "
            f"curl -sS -H 'Content-Type: application/json' -X POST --data-binary @- 127.0.0.1:{port}/"
        )
        done = subprocess.run(
            ["bash", "-c", line], env=environment, capture_output=True, timeout=PATIENCE_SECONDS, check=True
        )
        return done.stdout

    async def run() -> tuple[bytes, RawAnswer]:
        async with listening(backend.app) as port:
            said = await asyncio.to_thread(script, port)
            return said, await exchange(port, reading())

    said, read = asyncio.run(run())
    assert said == b"OK"
    posted = json.loads((tmp_path / "posted").read_bytes())
    shown = json.loads(read.body)[posted["hostname"]]
    for one in posted["gpus"]:
        one["processes"] = one["processes"] or []
    assert shown == {**posted, "ip": "::ffff:127.0.0.1"}
    report = backend.arrivals.nodes[posted["hostname"]].last
    assert [device.uuid for device in report.facts.devices] == [one["uuid"] for one in posted["gpus"]]
    assert report.mismatch() is None


# -- who may -----------------------------------------------------------------------------------------------------------


def _login(user: str, password: str, *lines: str) -> bytes:
    digest = hashlib.sha256(password.encode()).hexdigest()
    body = json.dumps({"user": user, "password": digest}).encode()
    return posting(body, "Content-Type: application/json", *lines, path="/auth")


def test_the_old_pages_login(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("# backend\nPORT=3000\nAUTH_USER=lab\nAUTH_PASS='vier Worte: ja'\n")
    backend = Backend(login=read_login_file(tmp_path / ".env"), origins=("http://gpus.example.org",))
    page = "Origin: http://gpus.example.org"
    right, by_page, wrong, unknown, elsewhere, nonsense, not_utf8, looking, asking = backend.talk(
        _login("lab", "vier Worte: ja"),
        _login("lab", "vier Worte: ja", page),
        _login("lab", "vier Worte"),
        _login("other", "vier Worte: ja"),
        _login("lab", "vier Worte: ja", "Origin: http://elsewhere.example"),
        posting(b'{"user": ["lab"]}', path="/auth"),
        posting(b'{"user": "\xff", "password": "x"}', path="/auth"),
        reading(path="/auth"),
        reading(page, "Access-Control-Request-Method: POST", method="OPTIONS", path="/auth"),
    )
    assert (right.status, right.body) == (200, b"OK")
    assert by_page.headers["access-control-allow-origin"] == "http://gpus.example.org"
    assert [answer.status for answer in (wrong, unknown, elsewhere, nonsense, not_utf8)] == [
        401,
        401,
        403,
        400,
        400,
    ]
    assert (looking.status, looking.headers["allow"]) == (405, "POST")
    assert asking.headers["access-control-allow-headers"] == "content-type"


@pytest.mark.parametrize("form", [str.lower, str.upper])
def test_the_tools_own_file_holds_the_hash_that_its_page_sends(
    tmp_path: Path, form: Callable[[str], str]
) -> None:
    digest = hashlib.sha256(b"vier Worte: ja").hexdigest()
    (tmp_path / ".env").write_text(f"AUTH_USER=aiiulab\r\nAUTH_PASS={form(digest)}\r\n")
    backend = Backend(login=read_login_file(tmp_path / ".env"))
    right, wrong, hash_of_hash = backend.talk(
        _login("aiiulab", "vier Worte: ja"), _login("aiiulab", "vier Worte"), _login("aiiulab", digest)
    )
    assert [answer.status for answer in (right, wrong, hash_of_hash)] == [200, 401, 401]


def test_a_login_file_that_everyone_can_read_is_warned_about(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    file.write_text("AUTH_USER=a\nAUTH_PASS=b\n")
    for mode, is_exposed in ((0o600, False), (0o640, False), (0o644, True), (0o604, True)):
        file.chmod(mode)
        assert ("chmod o-r" in (exposure_of(file) or "")) == is_exposed
    assert exposure_of(tmp_path / "none") is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"A=1\n" * 2_500_000, "is larger than 64 KiB, which ends in line 16385; set it to"),
        ("AUTH_USER=a\nAUTH_PASS=b\n".encode("utf-16"), ":1: is UTF-16 text; save the file as UTF-8"),
        (b"\xff\xfa\x00=\n", "neither AUTH_USER=… nor AUTH_PASS=… is in it; add both"),
    ],
)
def test_a_damaged_login_file_is_named(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / ".env").write_bytes(content)
    with pytest.raises(Misconfigured, match=message):
        read_login_file(tmp_path / ".env")


def test_the_old_pages_login_is_not_guessed_without_end() -> None:
    backend = Backend(login=OldLogin("lab", "right"))
    answers = backend.talk(
        *[_login("lab", f"wrong {number}") for number in range(21)], _login("lab", "right")
    )
    assert [answer.status for answer in answers] == [401] * 20 + [429] * 2


@pytest.mark.parametrize("text", [None, "", "AUTH_USER=lab\n", "# AUTH_USER=lab\nAUTH_PASS=x\n"])
def test_a_login_file_that_holds_no_login_stops_the_start(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / ".env").write_text(text)
    with pytest.raises(Misconfigured, match=r"legacy\.gpustat\.login_file: .*\.env"):
        read_login_file(tmp_path / ".env")


@pytest.mark.promise("old-doors-for-listed-networks")
def test_only_listed_networks_may_post_and_read() -> None:
    backend = Backend(networks=("127.0.0.9/32",))
    forged = "X-Forwarded-For: 127.0.0.9\r\nX-Real-IP: 127.0.0.9\r\nForwarded: for=127.0.0.9"
    answers = backend.talk(
        posting(), reading(), reading(forged), posting(BODY, forged, "Content-Type: application/json")
    )
    assert [answer.status for answer in answers] == [403] * 4
    assert backend.arrivals.nodes == {}
    # The old script keeps the refusal to itself.
    (notice,) = backend.app.notices()
    assert notice.code == "posts_refused"
    assert "127.0.0.1 posts to the old gpustat address and is refused" in notice.message
    assert backend.talk(posting(), source="127.0.0.9")[0].status == 200


def test_who_only_looks_from_elsewhere_is_not_told_of() -> None:
    backend = Backend(networks=("127.0.0.9/32",))
    backend.talk(reading(), posting(path="/auth"))
    assert backend.app.notices() == []


def test_a_name_belongs_to_the_first_sender_until_it_is_silent() -> None:
    backend = Backend()

    async def run() -> None:
        async with listening(backend.app) as port:
            assert (await exchange(port, posting())).status == 200
            intruder = await exchange(port, posting(), source="127.0.0.2")
            assert (intruder.status, error_code(intruder)) == (409, "name_taken")
            assert (await exchange(port, posting(at(2)))).status == 200
            problems = backend.arrivals.nodes["gpu-node-0"].last.sample.problems
            assert [problem.code for problem in problems] == ["two_senders"]
            assert "127.0.0.2" in problems[0].message
            backend.clock.advance(61)
            assert (await exchange(port, posting(), source="127.0.0.2")).status == 200
            assert (await exchange(port, posting())).status == 409
            (notice,) = backend.app.notices()
            assert (notice.code, notice.since) == ("name_taken_over", backend.clock.wall())
            assert "gpu-node-0 is now posted by 127.0.0.2" in notice.message
            assert "127.0.0.1, which used this name before" in notice.message
            backend.clock.advance(3601)
            assert backend.app.notices() == []

    asyncio.run(run())


def named(number: int) -> bytes:
    return posting(BODY.replace(b"node-0", b"node-%d" % number))


def test_one_sender_cannot_use_up_the_names() -> None:
    backend = Backend(max_nodes=6, max_nodes_per_sender=3)
    answers = backend.talk(*map(named, range(5)))
    assert [answer.status for answer in answers] == [200] * 3 + [503] * 2
    assert error_code(answers[3]) == "too_many_nodes"
    assert "3 names already come from your address" in answers[3].body.decode()
    assert sorted(backend.arrivals.nodes) == ["gpu-node-0", "gpu-node-1", "gpu-node-2"], (
        "what is refused is not there"
    )
    (notice,) = backend.app.notices()
    assert notice.code == "too_many_names"
    assert "127.0.0.1 has posted under 3 names" in notice.message
    assert "gpu-node-4, are refused" in notice.message
    assert "legacy.gpustat.max_nodes_per_sender" in notice.message
    # Silence gives it no new names; others still have theirs.
    backend.clock.advance(3000)
    assert backend.talk(named(6))[0].status == 503
    assert [answer.status for answer in backend.talk(*map(named, range(10, 14)), source="127.0.0.2")] == [
        200, 200, 200, 503,
    ]  # fmt: skip
    assert backend.talk(named(20), source="127.0.0.3")[0].status == 503
    assert {notice.code for notice in backend.app.notices()} == {"too_many_names", "too_many_nodes"}
    assert backend.talk(named(0))[0].status == 200


def test_names_are_kept_over_a_restart() -> None:
    backend = Backend()
    assert backend.talk(named(0))[0].status == 200
    again = Backend()
    again.arrivals = backend.arrivals
    again.app = GpustatApp(
        GpustatSettings(listen="127.0.0.1:0", networks=("127.0.0.0/8",), max_nodes=1),
        backend.arrivals,
        fleet_view=again.fleet.view,
        guard=Guard([]),
        scrub=scrub,
        wall=again.clock.wall,
        monotonic=again.clock.monotonic,
    )
    (intruder,) = again.talk(named(0), source="127.0.0.2")
    assert (intruder.status, error_code(intruder)) == (409, "name_taken")
    assert again.talk(named(1), source="127.0.0.2")[0].status == 503, "the nodes of before count"
    assert again.talk(named(0))[0].status == 200
    again.clock.advance(61)
    assert again.talk(named(0), source="127.0.0.2")[0].status == 200


def test_a_name_that_has_a_credential_is_not_for_this_address() -> None:
    (answer,) = Backend().talk(posting(BODY.replace(b"gpu-node-0", b"enrolled")))
    assert (answer.status, error_code(answer)) == (409, "name_taken")


def test_nodes_are_counted() -> None:
    backend = Backend(max_nodes=2)
    answers = backend.talk(
        *(posting(BODY.replace(b"node-0", b"node-%d" % number)) for number in (0, 1, 2, 0))
    )
    assert [answer.status for answer in answers] == [200, 200, 503, 200]
    assert error_code(answers[2]) == "too_many_nodes"


def test_the_hasty_are_told_to_wait() -> None:
    answers = Backend(requests_per_second=1.0).talk(*[reading()] * 6)
    assert [answer.status for answer in answers] == [200] * 4 + [429] * 2
    assert answers[-1].headers["retry-after"] == "1"


# -- browsers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("origin", "is_allowed"),
    [
        ("http://127.0.0.7:5173", True),
        ("https://127.0.0.7", True),
        ("http://pages.example.org", True),
        ("http://evil.example", False),
        ("http://10.0.0.1", False),
        ("null", False),
        ("http://127.0.0.7.evil.example", False),
        ("http://[::1]", False),
        ("file://127.0.0.7", False),
    ],
)
def test_pages_of_the_networks_and_listed_ones_may_read(origin: str, is_allowed: bool) -> None:
    backend = Backend(origins=("http://pages.example.org/",))
    read, asked = backend.talk(reading(f"Origin: {origin}"), reading(f"Origin: {origin}", method="OPTIONS"))
    assert read.headers.get("access-control-allow-origin") == (origin if is_allowed else None)
    assert asked.status == (204 if is_allowed else 405)


def test_pages_may_not_post() -> None:
    backend = Backend()
    json_type = "Content-Type: application/json"
    answers = backend.talk(
        posting(BODY, json_type, "Origin: http://127.0.0.7"),
        posting(BODY, json_type, "Origin: null"),
        posting(BODY, "Content-Type: text/plain"),
        posting(BODY, "Content-Type: application/x-www-form-urlencoded"),
    )
    assert [answer.status for answer in answers] == [403, 403, 415, 415]
    assert backend.arrivals.nodes == {}


def test_a_rebound_name_may_not_read() -> None:
    foreign, ours, by_address = Backend().talk(
        reading(host="evil.example:3000"), reading(host="gpus.example.org:3000"), reading()
    )
    assert [foreign.status, ours.status, by_address.status] == [421, 200, 200]


# -- bad input ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"garbage",
        BODY[:100],
        b"[" * 500_000,
        b'{"hostname": "gpu-node-0", "gpus": [{"memory.used": NaN}]}',
        b'{"hostname": "gpu-node-0", "gpus": {"a": 1}}',
        b'{"hostname": "gpu\xff", "gpus": []}',
        b'{"hostname": "\\u001b[2J", "gpus": []}',
        b'{"hostname": ["gpu"], "gpus": []}',
        b'{"hostname": "' + b"a" * 100_000 + b'", "gpus": []}',
    ],
    ids=range(10),
)
def test_what_is_no_post_of_gpustat_is_answered_with_a_reason(body: bytes) -> None:
    backend = Backend()
    bad, good = backend.talk(posting(body), posting())
    assert bad.status == 400
    assert error_code(bad) in ("garbled", "name_invalid")
    assert good.status == 200
    assert list(backend.arrivals.nodes) == ["gpu-node-0"]


def test_huge_numbers_and_wrong_types_are_unknown() -> None:
    body = BODY.replace(b'"memory.used": 18762', b'"memory.used": ' + b"9" * 4000)
    body = body.replace(b'"pid": 31337', b'"pid": {}').replace(
        b'"temperature.gpu": 61', b'"temperature.gpu": [61]'
    )
    backend = Backend()
    (answer,) = backend.talk(posting(body))
    assert answer.status == 200
    report = backend.arrivals.nodes["gpu-node-0"].last
    assert report.sample.devices[0].memory_used_bytes is None
    assert report.sample.devices[0].temperature_celsius is None
    assert report.table.processes == ()


def test_our_own_errors_are_told_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    backend = Backend()

    def broken() -> Any:
        raise LookupError("a mistake of ours")

    backend.app._fleet_view = broken
    read, posted = backend.talk(reading(), posting())
    assert (read.status, error_code(read)) == (500, "internal_error")
    assert "a mistake of ours" in caplog.text
    assert b"mistake" not in read.body
    assert posted.status == 200


@pytest.mark.parametrize("length", ["Content-Length: 100000000", "Transfer-Encoding: chunked"])
def test_a_hundred_megabytes_are_turned_away_early(length: str) -> None:
    head = f"POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n{length}\r\n\r\n".encode()
    chunk = b"100000\r\n" + b"a" * 0x100000 + b"\r\n" if "chunked" in length else b""
    answer, good = Backend().talk(head + chunk * 3, posting())
    assert (answer.status, error_code(answer)) == (413, "body_too_large")
    assert good.status == 200


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (posting(b'{"user":"a","password":"b"}', path="/auth"), 404),
        (reading(path="/index.html"), 404),
        (reading(path="/../../etc/passwd"), 404),
        (reading(method="DELETE"), 405),
        (reading(method="PUT"), 405),
        (posting(BODY, "Content-Type: application/json", "Content-Encoding: gzip"), 415),
    ],
)
def test_what_is_not_served(request_bytes: bytes, status: int) -> None:
    (answer,) = Backend().talk(request_bytes)
    assert answer.status == status
    assert error_code(answer)
