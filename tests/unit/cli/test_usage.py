"""``gpuherd usage`` against a hub that says what it is told to."""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import msgspec
import pytest
from click.testing import CliRunner, Result

from gpuherd.cli import usage as module
from gpuherd.cli.group import group as _group
from gpuherd.cli.showing import Screen
from gpuherd.client.herd_search import gpu_named
from gpuherd.client.herd_views import Herd
from gpuherd.client.usage_views import Stay, Usage
from support.seen_herd import NOW, gpu, node

FIGURES = {
    "gpu_hours": 1234.5,
    "busy_hours": 1000.0,
    "idle_hours": 234.5,
    "unknown_hours": 0.0,
    "efficiency": 0.81,
    "mean_utilization": 0.5,
    "memory_gib_hours": 10.0,
    "energy_kwh": None,
    "cost": 617.25,
    "a_newer_field": 1,
}
USAGE = {
    "start": 1_790_000_000.0,
    "end": 1_790_086_400.0,
    "by": "user",
    "rows": [
        {
            "key": "ada",
            "label": "ada\x1b[31m",
            "figures": FIGURES,
            "users": 1,
            "devices": 2,
            "sessions": 3,
            "bookings": {"booked_hours": 5.0, "used_hours": 4.0, "others_hours": 0.0, "unused_hours": 1.0},
        },
        {
            "key": None,
            "label": "unknown",
            "figures": {**FIGURES, "efficiency": None, "cost": None},
            "users": 1,
            "devices": 2,
            "sessions": 3,
        },
    ],
    "omitted_rows": 7,
    "totals": FIGURES,
    "capacity_hours": 2469.0,
    "currency": "EUR",
    "missing": [{"start": 1_790_000_000.0, "end": 1_790_003_600.0, "reason": "a file\x1b cannot be read"}],
}
TREND = {
    "user": "ada",
    "label": "ada",
    "reserved_gpus": 2.0,
    "used_gpus": 1.5,
    "idle_gpus": 0.5,
    "mean_2h": 1.25,
    "mean_24h": 0.75,
    "mean_1w": 0.25,
    "trend": "up",
    "trend_2h": "up",
    "trend_24h": "level",
    "trend_1w": "down",
}
STAY = {
    "id": "1",
    "node_id": "gpu07",
    "uuid": "GPU-1",
    "node": "gpu07",
    "type": "A100 80GB",
    "user": "ada",
    "job": None,
    "command": "python train.py",
    "started_at": 1_790_000_000.0,
    "ended_at": None,
    "last_seen_at": 1_790_001_000.0,
    "figures": FIGURES,
}
ANSWERS: dict[str, object] = {
    "/api/v1/usage": USAGE,
    "/api/v1/usage/trends": {
        "time": 0.0,
        "rows": [TREND],
        "free": {**TREND, "user": None, "label": "free", "trend": "level"},
        "earlier_until": 1_790_000_000.0,
    },
    "/api/v1/usage/sessions": {"start": 0.0, "end": 1.0, "sessions": [STAY], "is_complete": False},
    "/api/v1/timeline": {
        "devices": [{"node_id": "gpu07-lab", "node_name": "gpu07", "uuid": "GPU-1", "index": 0}]
    },
}


class _Hub(BaseHTTPRequestHandler):
    asked: list[tuple[str, dict[str, str]]]

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        query = dict(parse_qsl(parts.query))
        self.asked.append((parts.path.removeprefix("/api/v1/"), query))
        status, body = 200, json.dumps(ANSWERS.get(parts.path)).encode()
        if query.get("format") in ("csv", "markdown"):
            body = b"user,label\r\n\x1b[31mada,ada\r\n"
        if query.get("from") == "soon":
            status = 400
            body = b'{"error": {"code": "bad_range", "message": "\\"soon\\" is no time"}}'
        if query.get("by") == "group":
            status = 401
            body = b'{"error": {"code": "login_needed", "message": "log in first"}}'
        if query.get("by") == "job":
            status = 503
            body = b'{"error": {"code": "history_off", "message": "this hub remembers nothing"}}'
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[str, dict[str, str]]]]:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("TZ", "Europe/Berlin")
    asked: list[tuple[str, dict[str, str]]] = []
    handler = type("Handler", (_Hub,), {"asked": asked})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        monkeypatch.setenv("GPUHERD_HUB", f"http://127.0.0.1:{server.server_address[1]}")
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield asked
        server.shutdown()
        thread.join()


Asked = list[tuple[str, dict[str, str]]]


def run(*arguments: str) -> Result:
    return CliRunner().invoke(_group, ["usage", *arguments])


def test_usage_is_a_table_that_cannot_act_on_the_terminal(asked: Asked) -> None:
    done = run()
    assert done.exit_code == 0, done.output
    assert asked == [("usage", {"from": "7d", "by": "user", "limit": "50"})]
    lines = done.output.splitlines()
    assert lines[1].split() == [
        "user",
        "GPU-h",
        "busy",
        "held",
        "idle",
        "eff",
        "kWh",
        "EUR",
        "booked",
        "used",
    ]
    assert lines[2].split() == [
        "ada\ufffd[31m",
        "1,234.5",
        "1,000.0",
        "234.5",
        "81%",
        "-",
        "617.25",
        "5.0",
        "4.0",
    ]
    assert lines[3].split() == ["unknown", "1,234.5", "1,000.0", "234.5", "-", "-", "-", "-", "-"]
    assert lines[4].split()[0] == "all"
    assert "and 7 more; use a larger --limit" in done.output
    assert "50% of 2,469 available GPU-hours" in done.output
    assert "cannot be read" in done.output
    assert "\x1b" not in done.output


def test_what_is_asked_for_is_passed_on_and_nodes_go_by_their_names(asked: Asked) -> None:
    done = run(
        *("--by", "type", "--from", "2026-10", "--to", "2026-10", "--user", "ada", "--node", "GPU07"),
        *("--type", "A100 80GB", "--limit", "3"),
    )
    assert done.exit_code == 0, done.output
    assert asked[-1] == (
        "usage",
        {
            "from": "2026-10",
            "to": "2026-10",
            "user": "ada",
            "node": "gpu07-lab",
            "type": "A100 80GB",
            "by": "type",
            "limit": "3",
        },
    )
    assert run("--gpu", "gpu07/0").exit_code == 0
    assert asked[-1][1]["device"] == "GPU-1"
    assert run("sessions", "--gpu", "GPU-of-one-that-is-gone").exit_code == 0
    assert asked[-1][1]["device"] == "GPU-of-one-that-is-gone"
    done = run("--gpu", "gpu07/9")
    assert (done.exit_code, "has no GPU 9" in done.output) == (3, True), done.output
    assert run("--node", "a-node-that-is-gone").exit_code == 0
    assert asked[-1][1]["node"] == "a-node-that-is-gone"


def test_trends_and_sessions(asked: Asked) -> None:
    lines = run("trends").output.splitlines()
    assert lines[1].split() == ["ada", "1.5", "0.5", "2.0", "↑", "1.2", "→", "0.8", "↓", "0.2"]
    assert lines[2].split()[0] == "free"
    assert [line.partition(" 2026-09-21 ")[0] for line in lines[3:]] == ["until Mon"]
    assert lines[3].endswith(", the averages are those of the older page")
    done = run("sessions", "--user", "ada")
    assert asked[-1] == ("usage/sessions", {"from": "7d", "user": "ada", "limit": "50"})
    assert "python train.py" in done.output
    assert "showing the 50 latest" in done.output


def test_machines_get_json_and_csv(asked: Asked) -> None:
    assert json.loads(run("--json").output)["rows"][0]["key"] == "ada"
    assert json.loads(run("trends", "--json").output)["free"]["label"] == "free"
    assert json.loads(run("sessions", "--json").output)["sessions"][0]["id"] == "1"
    for arguments in ((), ("trends",), ("sessions",)):
        done = run(*arguments, "--csv")
        assert asked[-1][1]["format"] == "csv"
        assert done.output == "user,label\n\ufffd[31mada,ada\n"


def test_a_month_in_the_machines_own_zone(asked: Asked) -> None:
    done = run("month", "2026-10")
    assert asked == [("usage/months/2026-10", {"zone": "Europe/Berlin", "format": "markdown"})]
    assert "\x1b" not in done.output
    run("month", "2026-10", "--format", "html", "--zone", "UTC")
    assert asked[-1] == ("usage/months/2026-10", {"zone": "UTC", "format": "html"})


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (("--from", "soon"), 3, "soon"),
        (("--by", "group"), 4, "gpuherd login"),
        (("--by", "job"), 1, "remembers nothing"),
        (("--by", "colour"), 2, "Usage"),
        (("--csv", "--json"), 2, "use either"),
        (("sessions", "--limit", "1001"), 2, "1001"),
    ],
)
def test_exit_codes(asked: Asked, arguments: tuple[str, ...], code: int, told: str) -> None:
    done = run(*arguments)
    assert done.exit_code == code, done.output
    assert told in done.output


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--limit", "3", "sessions"), "write --limit after sessions: gpuherd usage sessions --limit …"),
        (
            ("--user", "ada", "--from", "3d", "sessions", "--node", "n"),
            "write --from and --user after sessions",
        ),
        (("--json", "trends"), "write --json after trends"),
        (("--user", "ada", "trends"), "gpuherd usage trends has no --user: only gpuherd usage itself has"),
        (("--from", "3d", "month", "2026-10"), "gpuherd usage month has no --from"),
    ],
)
def test_an_option_that_stands_too_early_is_not_dropped(
    asked: Asked, arguments: tuple[str, ...], told: str
) -> None:
    done = CliRunner().invoke(_group, ["usage", *arguments], prog_name="gpuherd")
    assert (done.exit_code, asked) == (2, []), done.output
    assert told in done.output


def test_which_hub_is_asked_may_stand_before_the_command(
    asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = os.environ["GPUHERD_HUB"]
    monkeypatch.setenv("GPUHERD_HUB", "http://127.0.0.1:9")
    assert run("--hub", url, "sessions", "--limit", "3").exit_code == 0
    assert asked == [("usage/sessions", {"from": "7d", "limit": "3"})]


@pytest.mark.parametrize(
    "month", ["bla", "2026", "2026-13", "2026-1", "2026-10-01", "２０２６-10", "../fleet"]
)
def test_what_is_no_month_is_told_before_anyone_is_asked(asked: Asked, month: str) -> None:
    done = run("month", month)
    assert (done.exit_code, asked) == (2, [])
    assert "write a month such as 2026-10\n" in done.output


def _stay(uuid: str, **more: object) -> Stay:
    return msgspec.convert({**STAY, "uuid": uuid, **more}, Stay)


GPUS = [
    "GPU-4f3a12ab-0000-4000-8000-000000000001",
    "GPU-81c0ffee-0000-4000-8000-000000000002",
    "MIG-81c0ffee-0000-4000-8000-000000000003",
    "MIG-GPU-81c0ffee-0000-4000-8000-000000000002/1/0",
    "GPU-00000000-0000-4000-8000-000000000005",
    "GPU-00000000-0000-4000-8000-000000000006",
]


def test_stays_tell_which_gpu_as_gpuherd_gpu_takes_it() -> None:
    lines = module._sessions([_stay(uuid) for uuid in GPUS], Screen(), 1_790_001_000.0).splitlines()
    at = lines[0].index("GPU ")
    told = [line[at:].split()[0] for line in lines[1:]]
    assert told == ["GPU-4f3a12ab", "GPU-81c0ffee", "MIG-81c0ffee", *GPUS[3:]], (
        "all of it where two begin alike"
    )
    herd = Herd(time=NOW, nodes=(node("gpu07", *(gpu(i, uuid=uuid) for i, uuid in enumerate(GPUS))),))
    assert [gpu_named(herd, word)[1].uuid for word in told] == GPUS


def test_stays_tell_the_place_of_a_gpu_that_is_there() -> None:
    lines = module._sessions([_stay(GPUS[0], device="gpu07/3")], Screen(), 1_790_001_000.0).splitlines()
    assert "gpu07/3" in lines[1]
    assert "GPU-4f3a12ab" not in lines[1]


def test_stays_on_a_narrow_terminal_still_tell_when_who_and_which_gpu() -> None:
    stays = [_stay(uuid, command="python " + "x" * 200) for uuid in GPUS[:2]]
    wide = module._sessions(stays, Screen(), 1_790_001_000.0)
    assert wide.count("x" * 200) == 2, "nothing is cut in a pipe"
    for width in (40, 60, 80, 120):
        lines = module._sessions(stays, Screen(width=width), 1_790_001_000.0).splitlines()
        assert max(map(len, lines)) <= width
        assert "GPU-4f3a12ab" in lines[1]
        assert "GPU-81c0ffee" in lines[2]
        assert "ada" in lines[2]


def test_numbers_stand_to_the_right(asked: Asked) -> None:
    lines = run().output.splitlines()[1:5]
    for name in ("GPU-h", "eff", "EUR", "used"):
        end = re.search(rf"{name}(?= |$)", lines[0])
        assert end is not None
        for line in lines[1:]:
            padded = line.ljust(end.end() + 1)
            assert padded[end.end() - 1] != " ", (name, line)
            assert padded[end.end()] == " ", (name, line)
    trends = run("trends").output.splitlines()
    assert trends[1].index("1.5") + 3 == trends[0].index("used") + 4
    stays = run("sessions").stdout.splitlines()
    assert stays[1].index("1,234.5") + 7 == stays[0].index("GPU-h") + 5


def test_a_narrow_terminal_loses_the_last_columns() -> None:
    usage = msgspec.convert(USAGE, Usage)

    def shown(width: int) -> list[str]:
        return module._usage(usage, Screen(width=width), 1_790_090_000.0).splitlines()

    assert shown(0)[1].split()[-1] == "used"
    assert shown(40)[1].split() == ["user", "GPU-h", "busy", "held", "idle"]
    assert shown(14)[1].split()[0] == "user"
    for width in (14, 40, 80):
        assert max(map(len, shown(width))) <= width
