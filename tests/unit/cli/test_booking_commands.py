"""The commands that ask a hub, as far as no hub is needed."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from gpuherd.bookings.times import read_start, read_zone
from gpuherd.cli.asking import asked_hub, client, span, table
from gpuherd.cli.bookings import _listed, _places
from gpuherd.cli.group import group as _group
from gpuherd.cli.showing import Screen, text_width
from gpuherd.cli.times import shown_span
from gpuherd.client import Login, LoginFile
from gpuherd.client.views import BookedDevice, Booking
from gpuherd.client.zone import machine_zone, zone_hint
from gpuherd.model.errors import Misconfigured

NOW = 1_794_820_800
"""Mon 2026-11-16 10:20 in Paris."""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.delenv("GPUHERD_HUB", raising=False)
    return tmp_path


@pytest.fixture
def in_paris(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Europe/Paris")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    "arguments",
    [
        ("book", "--for", "1h"),
        ("book", "2"),
        ("book", "2", "--for", "1h", "--until", "18:00"),
        ("book", "2", "--running", "--for", "1h"),
        ("bookings", "--mine", "--all"),
        ("bookings", "extend", "3"),
        ("bookings", "--node", "gpu07", "cancel", "17"),
        ("bookings", "--json", "extend", "17", "4h"),
        ("login", "--token-file", "token", "--name", "ann"),
        ("login", "--token-file", "token", "--days", "90"),
        ("login", "--forget", "--hub", "https://gpus.lab"),
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


def test_an_option_too_early_or_without_effect_is_told_by_its_name() -> None:
    told = {
        ("bookings", "--node", "gpu07", "cancel", "17"): "gpuherd bookings cancel has no --node",
        ("login", "--token-file", "token", "--name", "ann"): "--name cannot be combined with --token-file",
        ("login", "--forget", "--name", "ann"): "--forget cannot be combined with other options",
    }
    for arguments, sentence in told.items():
        assert sentence in CliRunner().invoke(_group, arguments, prog_name="gpuherd").output


def _booking(number: int, *devices: BookedDevice, starts: int = 0, ends: int = 3600) -> Booking:
    return Booking(
        id=number,
        title="a title of many words",
        holder="ann",
        devices=devices,
        starts_at=NOW + starts,
        ends_at=NOW + ends,
    )


def _device(index: int | None, parent: int | None = None, *, node: str = "a100-05") -> BookedDevice:
    return BookedDevice(
        node_id=node, uuid=f"GPU-{index}-{parent}-uuid", node_name=node, index=index, parent_index=parent
    )


def test_the_gpus_of_a_booking_are_in_order() -> None:
    gpus = [_device(index) for index in (7, 10, None, 4, 5)]
    slices = [_device(1, 2, node="a100-04"), _device(0, 2, node="a100-04"), _device(2, 0, node="a100-04")]
    assert _places(_booking(1, *gpus, *slices)) == "a100-04/0.2,2.0,2.1 a100-05/4,5,7,10,GPU-None-Non…"


@pytest.mark.parametrize("width", [0, 20, 40, 60, 80, 120, 200])
def test_bookings_fit_the_terminal_and_are_whole_in_a_pipe(width: int, in_paris: None) -> None:
    many = [_device(index) for index in range(64)]
    bookings = [
        _booking(17, _device(3), starts=-86_400, ends=86_400),
        _booking(18, _device(4), starts=3600, ends=7200),
        _booking(19, *many, starts=86_400, ends=400 * 86_400),
    ]
    lines = _listed(bookings, Screen(width=width), NOW).splitlines()
    assert len(lines) == 4
    if not width:
        assert f"a100-05/{','.join(map(str, range(64)))}  a title of many words" in lines[3], "nothing is cut"
        assert "Sun 2026-11-15 10:20 – Tue 2026-11-17 10:20 CET" in lines[1]
        return
    assert max(map(text_width, lines)) <= width
    assert lines[1].startswith("17")
    if width >= 40:
        assert "a100-05/3" in lines[1], "what is booked matters more than its title"
    if width == 40:
        assert "until 11-17 10:20" in lines[1]
        assert "11-16 11:20–12:20" in lines[2]
        assert "11-17 10:20–2027-12-21" in lines[3]
    if width == 80:
        assert "11-15 10:20–11-17 10:20" in lines[1]


def test_tables_line_up_and_cannot_act_on_the_terminal() -> None:
    lines = table([["1", "日本\x1b[31m", "z"], ["22", "é\u202e", "z"]], ["id", "name", "end"]).splitlines()
    assert lines == ["id  name       end", "1   日本\ufffd[31m  z", "22  é\ufffd         z"]


def test_numbers_stand_to_the_right_of_a_table() -> None:
    assert table([["ada", "5"], ["b", "1,000"]], ["user", "GPU-h"], numbers=(1,)).splitlines() == [
        "user  GPU-h",
        "ada       5",
        "b     1,000",
    ]


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
        assert hint is None or f"times are in {told}. Give --zone" in hint
    finally:
        monkeypatch.undo()
        time.tzset()


def test_times_by_the_clock_of_this_machine(in_paris: None) -> None:
    assert machine_zone() == "Europe/Paris"
    assert span(NOW, 1_794_824_400) == "Mon 2026-11-16 10:20–11:20 CET"
    assert span(NOW, 1_795_824_400) == "Mon 2026-11-16 10:20 – Sat 2026-11-28 01:06 CET"
    assert span(0, 10**14).endswith("never")
    assert shown_span(0, 10**14, NOW, Screen(width=80)) == "1970-01-01–never"
