"""The command line itself: fast to start, clear when something is missing."""

from __future__ import annotations

import subprocess
import sys

import pytest

from gpuherd import __version__
from gpuherd.cli import _COMMANDS


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "gpuherd", *arguments], capture_output=True, text=True, check=False
    )


def test_the_version_imports_nothing_heavy() -> None:
    code = (
        "import sys; sys.argv = ['gpuherd', '--version']\n"
        "from gpuherd.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = {'numpy', 'litestar', 'granian', 'sqlalchemy', 'psutil', 'pynvml', 'websockets', 'asyncio'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.splitlines() == [f"gpuherd, version {__version__}", "[]"]


@pytest.mark.parametrize("command", list(_COMMANDS))
def test_every_command_explains_itself(command: str) -> None:
    result = run(command, "--help")
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith(f"Usage: gpuherd {command}")


def test_help_lists_every_command() -> None:
    listed = run("--help").stdout
    assert [command for command in _COMMANDS if f"  {command} " not in listed] == []


def test_a_mistake_is_one_sentence_and_an_exit_code() -> None:
    result = run("config", "check", "missing.toml")
    assert result.returncode == 1
    assert (
        result.stderr == "gpuherd: missing.toml: there is no such file; check the path given with --config\n"
    )


def test_ctrl_c_while_modules_are_loaded_is_no_trace() -> None:
    code = (
        "import os, signal, sys\n"
        "class Impatient:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'click': os.kill(os.getpid(), signal.SIGINT)\n"
        "from gpuherd.cli import main\n"
        "sys.meta_path.insert(0, Impatient()); sys.argv = ['gpuherd', 'status']\n"
        "main()"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout, result.stderr) == (130, "", "")


def test_a_missing_extra_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['litestar'] = None;  sys.argv = ['gpuherd', 'up', '--state-dir', '/nonexistent']\n"
        "from gpuherd.cli import main\nmain()"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert "pip install 'gpuherd[hub]'" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(("typed", "told"), [("statu", " Did you mean 'status'?"), ("xyzzy", "")])
def test_an_unknown_command_gets_a_suggestion(typed: str, told: str) -> None:
    result = run(typed)
    assert (result.returncode, result.stderr.splitlines()[-1]) == (
        2,
        f"Error: No such command '{typed}'.{told}",
    )
