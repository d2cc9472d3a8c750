"""``gpuherd doctor`` as a process: what it prints, how it ends."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from pathlib import Path

from integration.doctor.conftest import Doctor, SshNode
from support.running import PATIENCE_SECONDS

COMMAND = [sys.executable, "-m", "gpuherd", "doctor"]


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )


def test_a_good_node_in_words(doctor: Doctor, ssh_node: SshNode) -> None:
    done = run("gpu01", "--config", doctor.configure(ssh_node.table()))
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout, "colours are for terminals"
    assert done.stdout.startswith("✓ listed ")
    assert done.stdout.endswith("\n\ngpu01: no problems found.\n")


def test_a_broken_node_as_json(doctor: Doctor) -> None:
    file = doctor.configure('[[nodes]]\nhosts = ["gpu01=127.0.0.1:1"]\nreach = { by = "ssh" }\n')
    done = run("gpu01", "--json", "--config", file)
    assert (done.returncode, done.stderr) == (1, "")
    steps = json.loads(done.stdout)
    assert all(step.keys() == {"name", "state", "seconds", "fact", "remedy"} for step in steps)
    broken = [step for step in steps if step["state"] == "failed"]
    assert [step["name"] for step in broken] == ["connect"]
    assert broken[0]["remedy"].startswith("nothing listens on 127.0.0.1 port 1")


def test_a_bad_configuration(tmp_path: Path) -> None:
    file = tmp_path / "gpuherd.toml"
    file.write_text('[hub]\nlisten = "127.0.0.1:8470"\nport = 1\n')
    for arguments in (["gpu01"], []):
        done = run(*arguments, "--config", file)
        assert done.returncode == 1
        assert "✗ configuration" in done.stdout
        assert f"{file}:3: hub.port: unknown key" in done.stdout.splitlines()[-1]


def test_usage() -> None:
    assert run("gpu01", "gpu02").returncode == 2


def test_an_interrupt_ends_it_cleanly(doctor: Doctor, ssh_node: SshNode) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        file = doctor.configure(ssh_node.table(f"gpu01=127.0.0.1:{port}", connect_deadline_seconds="300"))
        process = subprocess.Popen(
            [*COMMAND, "gpu01", "--config", str(file)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        with process:
            assert process.stdout is not None
            assert process.stderr is not None
            while not process.stdout.readline().startswith("✓ connect"):
                assert process.poll() is None
            process.send_signal(signal.SIGINT)
            process.wait(PATIENCE_SECONDS)
            assert "Traceback" not in process.stderr.read()
    assert process.returncode == 130
