"""What a configuration comes to, shown: it reads back as the same, and holds no secret."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from gpuherd.cli.config import command
from gpuherd.wiring.config import Config, read_config
from gpuherd.wiring.config_shown import config_shown, effective

RICH = """
[hub]
listen = "0.0.0.0:8470"
public = "counts"
records_url = "postgresql://herd:s3cret@db.example.org/gpuherd?sslpassword=hidden&password=hidden"
trusted_proxies = ["127.0.0.1"]
tick_seconds = 2.5

[login.proxy]
user_header = "X-Remote-User"

[[bookings.rules]]
groups = ["students"]
max_days = 2

[[nodes]]
hosts = ["gpu01", "big = gpu02"]
reach = { by = "ssh", user = "gpumon" }

[history]
max_bytes = 1234567891

[display.gpus]
"NVIDIA A100" = "A100 \\"big\\""
"""


def told(config: Config) -> dict[str, object]:
    return effective(config)


def test_what_is_shown_reads_back_as_the_same() -> None:
    config = read_config(RICH.replace("s3cret", "***").replace("hidden", "***"), "gpuherd.toml")

    again = read_config(config_shown(config), "shown")

    assert told(again) == told(config)


def test_only_what_is_changed_is_shown_and_comes_to_the_same() -> None:
    config = read_config(RICH.replace("s3cret", "***").replace("hidden", "***"), "gpuherd.toml")
    shown = config_shown(config, only_changed=True)

    assert "session_days" not in shown
    assert told(read_config(shown, "shown")) == told(config)


def test_the_defaults_differ_in_nothing() -> None:
    assert config_shown(read_config("", "nothing"), only_changed=True) == ""


def test_no_secret_is_shown() -> None:
    config = read_config(RICH, "gpuherd.toml")
    for text in (config_shown(config), json.dumps(effective(config))):
        assert "s3cret" not in text
        assert "hidden" not in text
        assert "db.example.org" in text


@pytest.mark.promise("config-show-hides-passwords")
@pytest.mark.parametrize(
    "password", ["pa/ss1word", "p@ss1word", "p:ss1word", "1234/ss1word", "p@s/s1@word", "a?b#ss1word"]
)
def test_a_password_that_is_not_escaped_is_hidden_whole(password: str) -> None:
    config = read_config(f'[hub]\nrecords_url = "postgresql://u:{password}@h/d"', "gpuherd.toml")
    shown = config_shown(config, only_changed=True)
    assert 'records_url = "postgresql://u:***@h/d"' in shown
    assert "word" not in shown


def test_the_command_shows_a_file(tmp_path: Path) -> None:
    file = tmp_path / "gpuherd.toml"
    file.write_text(RICH)

    as_toml = CliRunner().invoke(command, ["show", str(file), "--changed"])
    as_json = CliRunner().invoke(command, ["show", str(file), "--json"])

    assert 'listen = "0.0.0.0:8470"' in as_toml.output
    assert json.loads(as_json.output)["hub"]["tick_seconds"] == 2.5
