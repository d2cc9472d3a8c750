"""Whatever happens is one sentence and an exit code."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import IO, NoReturn

import click
import pytest

from gpuherd.cli import running
from gpuherd.cli.group import SECTIONS, group
from gpuherd.client.errors import HubOutdated, HubRefused, HubSilent
from gpuherd.client.views import HubError
from gpuherd.model.errors import Failed, Misconfigured, Refused


def run_raising(
    error: BaseException, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[int, str]:
    @click.command()
    def command() -> NoReturn:
        raise error

    monkeypatch.setattr(type(group), "get_command", lambda self, ctx, name: command)
    code = running.run(["anything"])
    return code, capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "code", "told"),
    [
        (HubSilent("http://hub cannot be reached"), 1, "gpuherd: http://hub cannot be reached\n"),
        (HubOutdated("the hub at http://hub is older"), 1, "gpuherd: the hub at http://hub is older\n"),
        (Misconfigured("gpuherd.toml:1: wrong"), 1, "gpuherd: gpuherd.toml:1: wrong\n"),
        (Failed("no"), 1, "gpuherd: no\n"),
        (Refused("unknown_node", "there is no node"), 3, "gpuherd: there is no node\n"),
        (
            HubRefused(401, HubError(code="login_needed", message="log in")),
            4,
            "gpuherd: log in\n  log in with: gpuherd login\n",
        ),
        (HubRefused(409, HubError(code="taken", message="it is taken")), 3, "gpuherd: it is taken\n"),
        (HubRefused(404, HubError(code="not_a_hub", message="no hub")), 1, "gpuherd: no hub\n"),
        (HubRefused(500, HubError(code="bug", message="\x1b[2Jbug")), 1, "gpuherd: �[2Jbug\n"),
        (click.UsageError("wrong"), 2, "Error: wrong\n"),
        (click.Abort(), 1, "gpuherd: aborted\n"),
        (KeyboardInterrupt(), 130, ""),
        (click.exceptions.Exit(7), 7, ""),
        (
            OSError(errno.ENOSPC, "No space left on device", "/var/x"),
            1,
            "gpuherd: /var/x: No space left on device; free some space, then try again\n",
        ),
        (
            ModuleNotFoundError("No module named 'numpy'", name="numpy"),
            1,
            "the Python package numpy; install the hub's parts with: pip install 'gpuherd[hub]'\n",
        ),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else None,
)
def test_errors(
    error: BaseException,
    code: int,
    told: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(running, "_let_go", lambda: None)
    found, err = run_raising(error, monkeypatch, capsys)
    assert (found, err.endswith(told)) == (code, True), err


def test_a_bug_keeps_its_trace(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ZeroDivisionError):
        run_raising(ZeroDivisionError(), monkeypatch, capsys)
    with pytest.raises(ModuleNotFoundError):
        run_raising(ModuleNotFoundError("gone", name="gpuherd.gone"), monkeypatch, capsys)


def gpuherd(*arguments: str, stdout: IO[str] | int = subprocess.PIPE) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "gpuherd", *arguments],
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )


def test_nobody_reads_on() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = gpuherd("config", "reference", stdout=writer)
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


def test_the_disk_is_full() -> None:
    with Path("/dev/full").open("w") as full:
        done = gpuherd("--help", stdout=full)
    assert done.returncode == 1
    assert (
        done.stderr
        == "gpuherd: the output cannot be written: No space left on device; free some space, then try again\n"
    )


def test_sections_hold_every_command_once() -> None:
    from gpuherd.cli import _COMMANDS

    listed = [name for names in SECTIONS.values() for name in names]
    assert len(listed) == len(set(listed))
    assert set(_COMMANDS) <= set(listed)
    text = gpuherd("--help").stdout
    for title in SECTIONS:
        assert f"\n{title}:\n" in text


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_is_told_how_to_complete(shell: str) -> None:
    script = gpuherd("completion", shell).stdout
    assert "_GPUHERD_COMPLETE" in script
    assert shell in script or "COMPREPLY" in script


def test_commands_are_completed_without_importing_them() -> None:
    code = (
        "import os, sys\n"
        "os.environ |= {'_GPUHERD_COMPLETE': 'bash_complete', 'COMP_WORDS': 'gpuherd st', 'COMP_CWORD': '1'}\n"
        "from gpuherd.cli.running import run\n"
        "code = run([])\n"
        "print(code, sorted(name for name in sys.modules if name.startswith('gpuherd.')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = ["cli", "cli.group", "cli.running", "cli.saying", "model", "model.errors"]
    assert done.stdout.splitlines() == ["plain,status", f"0 {[f'gpuherd.{name}' for name in loaded]}"]
