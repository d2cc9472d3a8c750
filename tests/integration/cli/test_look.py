"""gpuherd status, free, users, node and gpu against a real hub, each a process of its own."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from msgspec import structs

from gpuherd.cli.showing import plain_width
from gpuherd.model.reports import Problem
from support.booking_hub import BookingHub, booking_hub, report_of
from support.chooser import Chooser
from support.herd import WORKING, gpu
from support.hub import eventually
from support.terminal import Terminal

EVIL = "\x1b[2J\u202eevil"


async def fill(lab: BookingHub) -> None:
    """n1 and n2 have free GPUs; n3 a busy one, one in fault and one of which a stranger's name is told."""
    report = report_of(gpu(0), gpu(1), gpu(2, name="NVIDIA L40S"), users={0: "ada", 2: EVIL})
    broken = Problem(code="gpu_lost", message="GPU is lost: reset it", device_uuid="GPU-1", is_fault=True)
    sample = structs.replace(report.sample, devices=(WORKING, *report.sample.devices[1:]), problems=(broken,))
    await lab.report("n3", structs.replace(report, sample=sample))


def test_a_look_at_the_herd(tmp_path: Path) -> None:
    async def look() -> None:
        async with booking_hub(tmp_path / "hub") as lab:
            await fill(lab)
            ann = await lab.person("ann")
            shell = Chooser(lab, tmp_path / "ann", ann)
            await ann.book(("n2", "GPU-0"), end="2h")
            await eventually(lambda: lab.hub.fleet.view().nodes[1].devices[0].availability.state == "booked")

            code, said, told = await shell.run("status")
            assert (code, told) == (0, "")
            assert said.startswith("○ 5 free of 9 GPUs on 3 nodes   ■ 2 busy   ◩ 1 booked   ✕ 1 fault\n")
            assert re.search(r"\n  0  ■ busy +━+.* 90%  40.0/80G .*ada 1G\n", said)
            assert re.search(r"\n  1  ✕ fault .*GPU is lost: reset it\n", said)
            assert re.search(r"\n  0  ◩ booked .*booked by Ann until \d\d:\d\d|\w{3} \d\d:\d\d\n", said)
            assert "\x1b" not in said
            assert "\u202e" not in said
            assert "[2J" in said, "what is hostile is shown, and harmless"
            assert (await shell.run("status", "--brief"))[1].count("\n") == 2 + 1 + 3

            code, said, _ = await shell.run("status", "ada", "n1")
            assert (code, "n2" in said, said.count("\n  0 ")) == (0, False, 2)
            code, said, told = await shell.run("status", "adda")
            assert (code, said) == (3, "")
            assert told == (
                'gpuherd: there is no node "adda", and no user of this name holds a GPU; did you mean ada?\n'
            )
            code, said, _ = await shell.run("status", "n3", "--json")
            answer = json.loads(said)
            assert [node["id"] for node in answer["nodes"]] == ["n3"]
            assert answer["totals"]["devices"]["free"] == 5, "all that the hub tells"
            assert said.isascii()

            code, said, _ = await shell.run("free")
            assert (code, said) == (0, "○ 5  A100 80GB  of 8  4 on one node  n1/0-3 n2/1\n")
            assert (await shell.run("free", "-n", "4", "--same-node", "--mem", "80G"))[0] == 0
            code, said, told = await shell.run("free", "-n", "5", "--same-node")
            assert (code, said.splitlines()[0]) == (3, "free: n1/0-3 n2/1")
            assert told == "gpuherd: 5 GPUs on one node not available: 5 are free, but not on one node\n"
            code, said, told = await shell.run("free", "--type", "l40s")
            assert (code, said.startswith("n3/2  ■ busy  L40S  ")) == (3, True)
            assert told == "gpuherd: 1 l40s not available: none of 1 such GPU is free\n"
            code, said, told = await shell.run("free", "--type", "b200")
            assert (code, said, told) == (3, "", "gpuherd: no such GPU in the herd: 1 b200\n")
            code, said, _ = await shell.run("free", "--node", "n2", "--json")
            assert [one["place"] for one in json.loads(said)["devices"]] == ["n2/1"]
            assert (await shell.run("free", "--node", "n9"))[::2] == (3, 'gpuherd: there is no node "n9"\n')
            assert (await shell.run("free", "--mem", "lots"))[0] == 2

            code, said, _ = await shell.run("users")
            assert [line.split()[0] for line in said.splitlines()[:2]] == ["user", "ada"]
            assert re.search(r"\nAnn +0 +1 +-", said), "who has booked and does not use it"
            assert (await shell.run("users", "eve"))[::2] == (
                3,
                "gpuherd: no user named eve holds a GPU now\n",
            )
            code, said, _ = await shell.run("users", "ada", "--json")
            assert json.loads(said)[0]["places"] == ["n3/0"]
            assert json.loads(said)[0]["processes"] == 1
            for sort, first in (("memory", "gpu_memory_bytes"), ("processes", "processes")):
                code, said, _ = await shell.run("users", "--sort", sort, "--json")
                amounts = [holder[first] or 0 for holder in json.loads(said)]
                assert amounts == sorted(amounts, reverse=True)
                assert amounts[0] > amounts[-1]

            code, said, _ = await shell.run("node", "n3")
            assert (code, said.startswith("n3  live, ")) == (0, True)
            assert "✕" in said
            assert json.loads((await shell.run("node", "show", "n3", "--json"))[1])["id"] == "n3"
            assert (await shell.run("node", "n9"))[::2] == (3, 'gpuherd: there is no node "n9"\n')
            assert (await shell.run("node", "show"))[0] == 2
            code, said, _ = await shell.run("gpu", "n2/0")
            assert (code, said.startswith("n2/0  A100 80GB  ◩ booked")) == (0, True)
            assert re.search(r"◩ current +Ann", said)
            code, said, _ = await shell.run("gpu", "n3:1", "--json")
            told_gpu = json.loads(said)
            assert (told_gpu["place"], told_gpu["problems"][0]["code"]) == ("n3/1", "gpu_lost")
            assert (await shell.run("gpu", "n3/7"))[::2] == (3, "gpuherd: n3 has no GPU 7\n")

    asyncio.run(look())


def test_who_may_not_look_and_what_is_no_hub(tmp_path: Path) -> None:
    async def look() -> None:
        async with booking_hub(tmp_path / "hub") as lab:
            await lab.person("ann")  # from now on a login is needed
            stranger = Chooser(lab, tmp_path / "stranger")
            wrong = tmp_path / "token"
            wrong.write_text("ghu_" + "x" * 40)
            wrong.chmod(0o600)
            for arguments in (("status",), ("free",), ("users",), ("node", "n1"), ("gpu", "n1/0")):
                for options in ((), ("--token-file", str(wrong))):
                    code, said, told = await stranger.run(*arguments, *options)
                    assert (code, said) == (4, ""), (arguments, told)
                    first, hint = told.splitlines()
                    assert hint == "  log in with: gpuherd login", "the hub that it would ask anyway"
                    words = "does not accept this token" if options else "requires a login"
                    assert words in first
            code, _, told = await stranger.run(
                "status", "--hub", lab.hub.url, GPUHERD_HUB="http://127.0.0.1:9"
            )
            assert (code, told.splitlines()[1]) == (
                4,
                f"  log in with: gpuherd login --hub {lab.hub.url.rstrip('/')}",
            )
            code, said, told = await stranger.run("status", GPUHERD_HUB="http://127.0.0.1:9")
            assert (code, said) == (1, "")
            assert told == "gpuherd: http://127.0.0.1:9 cannot be reached: nothing listens there\n"
            for options in (("--watch", "--json"), ("--brief", "--full"), ("--watch", "0")):
                assert (await stranger.run("status", *options))[0] == 2

    asyncio.run(look())


OLD = b'{"error": {"code": "not_found", "message": "there is nothing at this address"}}'


@contextmanager
def answering(status: int, body: bytes, glance: bytes | None = None) -> Iterator[str]:
    """Serve the same answer whatever is asked; to who asks for a glance this one, or as a hub that knows none."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            told, content = status, body
            if status == 200 and self.path == "/api/v1/fleet/glance":
                told, content = (404, OLD) if glance is None else (200, glance)
            self.send_response(told)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def ask(url: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "gpuherd", *arguments, "--hub", url],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("status", "body", "sentence"),
    [
        (
            404,
            OLD,
            "has no GET /api/v1/fleet (there is nothing at this address): check the address; if it is the hub's, ",
        ),
        (404, b"<html>", "responds with 404, but not like a gpuherd hub"),
        (200, b"<html>", "responds, but not like a gpuherd hub of this version"),
        (200, b'{"time": "noon"}', "responds, but not like a gpuherd hub of this version"),
        (503, b"", "responds with 503: the hub behind it is down or busy"),
    ],
)
def test_an_old_hub_or_none_at_all(status: int, body: bytes, sentence: str) -> None:
    with answering(status, body) as url:
        done = ask(url, "status")
    assert (done.returncode, done.stdout) == (1, "")
    assert (done.stderr.count("\n"), sentence in done.stderr) == (1, True), done.stderr


def test_a_hub_of_another_time_tells_more_and_less() -> None:
    herd = {
        "time": 1.79e9,
        "weather": "fine",
        "nodes": [
            {
                "id": "n1",
                "name": "n1",
                "state": "drowsy",
                "devices": [
                    {
                        "node_id": "n1",
                        "facts": {"uuid": "GPU-1", "index": 0, "name": "NVIDIA Z1", "colour": "red"},
                        "availability": {"state": "asleep"},
                    }
                ],
            }
        ],
    }
    with answering(200, json.dumps(herd).encode()) as url:
        done = ask(url, "status")
        assert (done.returncode, done.stderr) == (0, "")
        assert "○ 0 free of 1 GPU on 1 node   ? 1 asleep" in done.stdout
        assert ask(url, "free").returncode == 3
        assert json.loads(ask(url, "status", "--json").stdout) == herd


def columns(names: str, *rows: tuple[object, ...]) -> dict[str, list[object]]:
    return {name: [row[place] for row in rows] for place, name in enumerate(names.split())}


DEVICE_COLUMNS = (
    "uuid model index parent_uuid state reason since utilization_gpu memory_used_mebibytes temperature_celsius "
    "power_watts"
)
GLANCE = {
    "time": 1.79e9,
    "weather": "fine",
    "models": [{"short_name": "Z1", "name": "NVIDIA Z1", "colour": "red"}],
    "nodes": columns(
        "id name hostname state reason age_seconds device_count mood",
        ("n1", "n1", None, "drowsy", "", None, 1, 7),
    ),
    "devices": columns(DEVICE_COLUMNS, ("GPU-1", 0, 0, None, "asleep", "", None, None, None, None, None)),
    "processes": columns("device pid user started_at gpu_memory_mebibytes"),
}


def test_a_glance_of_another_time_tells_more_and_less() -> None:
    whole = {"time": 1.79e9, "totals": {}, "nodes": []}
    with answering(200, json.dumps(whole).encode(), json.dumps(GLANCE).encode()) as url:
        done = ask(url, "status")
        assert (done.returncode, done.stderr) == (0, "")
        assert "○ 0 free of 1 GPU on 1 node   ? 1 asleep" in done.stdout
        assert ask(url, "free").returncode == 3
        assert json.loads(ask(url, "status", "--json").stdout) == whole, "of scripts nothing is kept back"


def test_nobody_reads_on(tmp_path: Path) -> None:
    nodes = [{"id": f"n{number}", "name": f"n{number}", "state": "never"} for number in range(20_000)]
    with answering(200, json.dumps({"time": 1.79e9, "nodes": nodes}).encode()) as url:
        gpuherd = f"{sys.executable} -m gpuherd status --brief --hub {url}"
        done = subprocess.run(
            ["bash", "-c", f"{gpuherd} | head -1; echo ${{PIPESTATUS[0]}}"],
            capture_output=True,
            text=True,
            check=True,
        )
    assert (done.stdout.splitlines()[1:], done.stderr) == (["141"], "")


def test_a_terminal_of_any_width(tmp_path: Path) -> None:
    async def look() -> None:
        async with booking_hub(tmp_path / "hub") as lab:
            await fill(lab)

            def show(columns: int, *arguments: str, **environment: str) -> list[str]:
                home = {"HOME": str(tmp_path), "GPUHERD_HUB": lab.hub.url, **environment}
                code, shown = Terminal(*arguments, columns=columns, environment=home).end()
                assert code == 0, shown
                lines = shown.splitlines()
                assert max(plain_width(line) for line in lines) <= columns, lines
                return lines

            for columns in (20, 40, 200):
                lines = await asyncio.to_thread(show, columns, "status", "n3")
                assert "\x1b[38;5;68m■ busy\x1b[0m" in "".join(lines), "a word, not only a colour"
            for command in (("users",), ("free",), ("node", "n3"), ("gpu", "n3/0")):
                await asyncio.to_thread(show, 40, *command)
            plain = await asyncio.to_thread(lambda: show(40, "status", NO_COLOR="1"))
            assert "\x1b" not in "".join(plain)

    asyncio.run(look())


def test_watching_until_interrupted(tmp_path: Path) -> None:
    async def look() -> None:
        async with booking_hub(tmp_path / "hub") as lab:
            home = {"HOME": str(tmp_path), "GPUHERD_HUB": lab.hub.url}
            terminal = Terminal("status", "--watch", "0.1", lines=12, environment=home)
            await asyncio.to_thread(terminal.until, "6 free", 3)
            terminal.interrupt()
            code, shown = await asyncio.to_thread(terminal.end)
            assert code == 130
            assert "Traceback" not in shown
            for drawn in shown.split("\x1b[H\x1b[2J")[1:-1]:
                assert drawn.count("\n") <= 12

    asyncio.run(look())


def test_a_hub_that_goes_away_is_told_while_watching() -> None:
    with answering(200, b'{"time": 1.79e9, "nodes": []}') as url:
        terminal = Terminal("status", "--watch", "0.1", "--hub", url)
        terminal.until("0 free")
    terminal.until("cannot be reached: nothing listens there")
    terminal.interrupt()
    assert terminal.end()[0] == 130


def test_who_only_asks_a_hub_needs_none_of_its_packages() -> None:
    hub_only = (
        "numpy",
        "litestar",
        "granian",
        "sqlalchemy",
        "aiohttp",
        "asyncssh",
        "duckdb",
        "psutil",
        "pynvml",
    )
    code = f"import sys\nsys.modules.update(dict.fromkeys({hub_only}))\nfrom gpuherd.cli import main\nmain()"
    with answering(200, b'{"time": 1.79e9, "nodes": []}') as url:
        for command, ended in (("status", 0), ("users", 0), ("free", 3)):
            done = subprocess.run(
                [sys.executable, "-c", code, command, "--hub", url],
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == ended, done.stderr
            assert "needs the Python package" not in done.stderr
