"""``gpuherd usage`` against a hub that says what it is told to."""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest
from click.testing import CliRunner, Result

from gpuherd.cli import usage as module
from gpuherd.cli.group import group as _group

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
    assert lines[1].split() == ["user", "GPU-h", "work", "idle", "eff", "kWh", "EUR", "booked", "used"]
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
    assert "and 7 more; give a larger --limit" in done.output
    assert "50% of 2,469 GPU-hours that there were" in done.output
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
    assert run("--node", "a-node-that-is-gone").exit_code == 0
    assert asked[-1][1]["node"] == "a-node-that-is-gone"


def test_trends_and_sessions(asked: Asked) -> None:
    lines = run("trends").output.splitlines()
    assert lines[1].split() == ["ada", "1.5", "0.5", "2.0", "↑", "1.2", "0.8", "0.2"]
    assert lines[2].split()[0] == "free"
    done = run("sessions", "--user", "ada")
    assert asked[-1] == ("usage/sessions", {"from": "7d", "user": "ada", "limit": "50"})
    assert "python train.py" in done.output
    assert "these are the 50 latest" in done.output


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
        (("--csv", "--json"), 2, "not both"),
        (("sessions", "--limit", "1001"), 2, "1001"),
    ],
)
def test_exit_codes(asked: Asked, arguments: tuple[str, ...], code: int, told: str) -> None:
    done = run(*arguments)
    assert done.exit_code == code, done.output
    assert told in done.output


def test_a_narrow_terminal_loses_the_last_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    header, rows = ["user", "GPU-h", "work", "idle"], [["ada", "1,000.0", "900.0", "100.0"]]

    class Terminal:
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stdout", Terminal())
    monkeypatch.setattr(shutil, "get_terminal_size", lambda: os.terminal_size((20, 24)))
    assert module._fitting(rows, header).splitlines()[0] == "user  GPU-h    work"
    monkeypatch.setattr(shutil, "get_terminal_size", lambda: os.terminal_size((5, 24)))
    assert module._fitting(rows, header).splitlines()[0] == "user  GPU-h"
