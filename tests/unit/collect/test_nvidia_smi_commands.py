"""The local runner with real commands: deadline, cap, errors, nothing left behind."""

from __future__ import annotations

import time
from pathlib import Path

import psutil
import pytest

from gpuherd.collect.commands import MAX_OUTPUT_BYTES, CommandFailed, LocalRunner
from gpuherd.model.errors import Failed, Unavailable
from support.running import PATIENCE_SECONDS


def test_output_and_failure() -> None:
    runner = LocalRunner()
    assert runner.run(["printf", "a\\nb"], 10) == b"a\nb"
    with pytest.raises(CommandFailed, match="status 3: to stdout") as caught:
        runner.run(["sh", "-c", "echo to stdout; exit 3"], 10)
    assert (caught.value.status, caught.value.output) == (3, b"to stdout\n")
    with pytest.raises(CommandFailed, match="complaint"):
        runner.run(["sh", "-c", "echo complaint >&2; exit 1"], 10)
    with pytest.raises(Unavailable, match="no gpuherd-no-such-command"):
        runner.run(["gpuherd-no-such-command"], 10)


def test_a_hanging_command_is_ended_with_its_children(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    with pytest.raises(Failed, match=r"did not finish within 0\.5 s"):
        LocalRunner().run(["sh", "-c", f"sleep 60 & echo $! > {pid_file}; wait"], 0.5)
    pid = int(pid_file.read_text())
    until = time.monotonic() + PATIENCE_SECONDS
    while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < until, "the child's child still runs"
        time.sleep(0.01)


def test_a_command_that_closed_its_output_has_the_same_deadline() -> None:
    with pytest.raises(Failed, match="did not finish"):
        LocalRunner().run(["sh", "-c", "exec >&- 2>&-; sleep 60"], 0.5)


def test_endless_output_is_cut() -> None:
    with pytest.raises(Failed, match=f"more than {MAX_OUTPUT_BYTES} bytes"):
        LocalRunner().run(["yes"], 30)
