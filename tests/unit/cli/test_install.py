"""`gpuherd install` on the command line, below a folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.running import PATIENCE_SECONDS


def gpuherd(*arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "gpuherd", "install", *arguments],
        input=text,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )


def test_it_tells_what_it_changed_and_what_is_left_to_do(tmp_path: Path) -> None:
    told = gpuherd("hub", "--root", str(tmp_path), "--base-path", "/gpus/")
    assert (told.returncode, told.stderr) == (0, "")
    lines = told.stdout.splitlines()
    assert "changed: /etc/systemd/system/gpuherd-hub.service" in lines
    assert lines[-1].startswith("Next: ")
    assert 'base_path = "/gpus/"' in (tmp_path / "etc/gpuherd/gpuherd.toml").read_text()
    again = gpuherd("hub", "--root", str(tmp_path), "--base-path", "/gpus/")
    assert again.stdout.startswith("nothing to change\n")


def test_as_json_with_a_token_from_standard_input(tmp_path: Path) -> None:
    options = ("--root", str(tmp_path), "--hub", "https://h.example.org", "--join-token-file", "-", "--json")
    checked = gpuherd("agent", *options, "--check", text="ghj_secret\n")
    assert not list(tmp_path.iterdir())
    told = gpuherd("agent", *options, text="ghj_secret\n")
    assert json.loads(checked.stdout)["changed"] == json.loads(told.stdout)["changed"]
    assert json.loads(gpuherd("agent", *options, text="ghj_secret\n").stdout)["changed"] == []
    assert "ghj_secret" not in told.stdout + told.stderr
    removed = gpuherd("remove", "agent", "--root", str(tmp_path), "--json")
    assert "/etc/gpuherd/join-token" in json.loads(removed.stdout)["changed"]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("agent", "--hub", "https://h.example.org"), "this node is not enrolled yet: create a join token"),
        (("agent", "--hub", "https://h", "--join-token-file", "/nowhere"), "cannot be read from /nowhere"),
        (("hub", "--listen", "here"), 'hub.listen: "here" is not an IP address with a port'),
    ],
)
def test_what_cannot_be_is_one_sentence_and_nothing_is_written(
    tmp_path: Path, arguments: tuple[str, ...], complaint: str
) -> None:
    told = gpuherd(*arguments, "--root", str(tmp_path))
    assert told.returncode == 1
    assert told.stderr.startswith("gpuherd: ")
    assert complaint in told.stderr
    assert len(told.stderr.splitlines()) == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(os.geteuid() != 0 or Path("/run/systemd/system").exists(), reason="systemd runs here")
def test_a_machine_without_systemd_is_told_so() -> None:
    told = gpuherd("hub", "--check")
    assert told.returncode == 1
    assert told.stderr.startswith("gpuherd: systemd does not run on this machine: ")
