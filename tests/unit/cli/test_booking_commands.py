"""The commands that ask a hub, as far as no hub is needed."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from gpuherd.bookings.times import read_start, read_zone
from gpuherd.cli.asking import asked_hub, client, span, table
from gpuherd.cli.group import group as _group
from gpuherd.client import Login, LoginFile
from gpuherd.client.zone import machine_zone, zone_hint
from gpuherd.model.errors import Misconfigured


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.delenv("GPUHERD_HUB", raising=False)
    return tmp_path


@pytest.mark.parametrize(
    "arguments",
    [
        ("book", "--for", "1h"),
        ("book", "2"),
        ("book", "2", "--for", "1h", "--until", "18:00"),
        ("book", "2", "--running", "--for", "1h"),
        ("bookings", "--mine", "--all"),
        ("bookings", "extend", "3"),
        ("release",),
        ("release", "zero"),
        ("release", "0"),
    ],
)
def test_a_wrong_command_line_is_told_before_anyone_is_asked(arguments: tuple[str, ...]) -> None:
    done = CliRunner().invoke(_group, arguments)
    assert done.exit_code == 2
    assert done.output.startswith("Usage: ")


def test_times_in_the_help_can_be_read() -> None:
    said = CliRunner().invoke(_group, ["book", "--help"]).output
    times = re.findall(r"gpuherd book .*--(?:start|for|until) (\"[^\"]+\"|\S+)", said)
    times += re.findall(r"--start (\"[^\"]+\"|[a-z]\S+)", said)
    assert len(times) > 3
    for text in times:
        assert read_start(text.strip('"'), now=1_794_820_800, zone=read_zone("UTC")) > 1_794_820_800


def test_which_hub_is_asked(home: Path) -> None:
    assert asked_hub(None) == "http://127.0.0.1:8470"
    config = home / ".config/gpuherd/gpuherd.toml"
    config.parent.mkdir(parents=True)
    config.write_text('[agent]\nhub_url = "https://gpus.lab"\n')
    assert asked_hub(None) == "https://gpus.lab"
    config.write_text("not = [toml")
    assert asked_hub(None) == "http://127.0.0.1:8470"
    LoginFile(home / ".config/gpuherd/token").save(Login(hub="https://other.lab", token="ghu_x"))
    assert asked_hub(None) == "https://other.lab"
    assert asked_hub("https://named.lab") == "https://named.lab"


def test_a_token_is_shown_to_no_other_hub_and_to_nobody_who_listens(home: Path) -> None:
    LoginFile(home / ".config/gpuherd/token").save(Login(hub="https://gpus.lab", token="ghu_x"))
    assert client("https://gpus.lab/", None).line._token == "ghu_x"
    assert client("https://evil.lab", None).line._token is None
    assert client("https://gpus.lab:8443", None).line._token is None
    LoginFile(home / ".config/gpuherd/token").save(Login(hub="http://gpus.lab", token="ghu_x"))
    with pytest.raises(Misconfigured, match="is not encrypted"):
        client("http://gpus.lab", None)


def test_tables_line_up_and_cannot_act_on_the_terminal() -> None:
    lines = table([["1", "日本\x1b[31m", "z"], ["22", "é\u202e", "z"]], ["id", "name", "end"]).splitlines()
    assert lines == ["id  name       end", "1   日本\ufffd[31m  z", "22  é\ufffd         z"]


@pytest.mark.parametrize(
    ("set_to", "zone", "told"),
    [
        ("Europe/Paris", "Europe/Paris", None),
        (":Europe/Paris", "Europe/Paris", None),
        ("/usr/share/zoneinfo/Europe/Paris", "Europe/Paris", None),
        ("UTC", "UTC", None),
        ("EST5EDT", "EST5EDT", None),
        ("XYZ-1", "Etc/GMT-1", "UTC+01:00"),
        ("XYZ3", "Etc/GMT+3", "UTC-03:00"),
        ("<+0530>-5:30", None, "the hub's zone"),
    ],
)
def test_zones_that_have_a_name_and_others(
    monkeypatch: pytest.MonkeyPatch, set_to: str, zone: str | None, told: str | None
) -> None:
    monkeypatch.setenv("TZ", set_to)
    time.tzset()
    try:
        assert machine_zone() == zone
        assert zone is None or read_zone(zone).key == zone
        hint = zone_hint()
        assert (hint is None) == (told is None)
        assert hint is None or f"are those of {told}. Give --zone" in hint
    finally:
        monkeypatch.undo()
        time.tzset()


def test_times_by_the_clock_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Europe/Paris")
    time.tzset()
    try:
        assert machine_zone() == "Europe/Paris"
        assert span(1_794_820_800, 1_794_824_400) == "Mon 2026-11-16 10:20–11:20 CET"
        assert span(1_794_820_800, 1_795_824_400) == "Mon 2026-11-16 10:20 – Sat 2026-11-28 01:06 CET"
        assert span(0, 10**14).endswith("never")
    finally:
        monkeypatch.undo()
        time.tzset()
