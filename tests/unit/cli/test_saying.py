"""A stderr that cannot be written ends nothing, and changes no exit code."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec import json

from gpuherd.cli.interrupts import Interrupts
from gpuherd.cli.progress import Progress
from gpuherd.cli.saying import say, write
from gpuherd.cli.taking import Taking
from gpuherd.client import HubClient, HubSilent
from gpuherd.client.holding import Holding
from gpuherd.client.views import Booking

FULL = Path("/dev/full")


def test_a_full_log_changes_no_exit_code() -> None:
    code = (
        "import sys; from gpuherd.cli.saying import say, write\n"
        "say('lost'); say('lost'); write('lost'); print(sys.stderr.fileno()); sys.exit(7)"
    )
    with FULL.open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=full, text=True, check=False
        )
    assert (done.returncode, done.stdout) == (7, "2\n")


def test_what_is_said_when_there_is_room_again_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (tmp_path / "log").open("wb") as log, FULL.open("wb", buffering=0) as full:
        monkeypatch.setattr(sys, "stderr", io.TextIOWrapper(full, "utf-8", write_through=True))
        say("lost")
        os.dup2(log.fileno(), full.fileno())
        say("here again \u2026")
        write("and again\n")
    assert (tmp_path / "log").read_text(encoding="utf-8") == "here again \u2026\nand again\n"


def test_someone_who_waits_waits_on_when_the_terminal_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    ours, theirs = os.openpty()
    with io.TextIOWrapper(io.FileIO(theirs, "w"), write_through=True) as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        progress = Progress("1 GPU")
        os.close(ours)
        with pytest.raises(OSError, match="Input/output error"):
            terminal.write("gone")
        progress.tell_trouble(HubSilent("it is away"))
        progress.end()
    monkeypatch.setattr(sys, "stderr", None)
    Progress("1 GPU").tell_trouble(HubSilent("it is away"))


class AbsentHub:
    """Does not answer at first."""

    url = "http://hub"

    def __init__(self) -> None:
        self.asked = 0

    def with_deadline(self, _seconds: float) -> AbsentHub:
        return self

    def ask(self, *_asked: object, **_more: object) -> bytes:
        self.asked += 1
        if self.asked < 3:
            raise HubSilent("it is away")
        return json.encode(Booking(id=7, starts_at=0, ends_at=3600))


def test_what_is_booked_is_given_back_although_nobody_can_be_told_of_trouble(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    line = AbsentHub()
    holding = Holding(HubClient(line), words="test", sleep=lambda _: None)  # type: ignore[arg-type]
    holding.booking = Booking(id=7, starts_at=0, ends_at=3600)
    with io.TextIOWrapper(io.FileIO(FULL, "w"), write_through=True) as full:
        monkeypatch.setattr(sys, "stderr", full)
        Taking(None, Interrupts(), holding=holding).give_back()  # type: ignore[arg-type]
    assert line.asked == 3
    holding.give_back()
    assert line.asked == 3  # there is nothing left
