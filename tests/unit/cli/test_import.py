"""gpuherd import, as it is typed."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from gpuherd.cli.import_ import command


def test_it_says_line_by_line_what_was_taken_and_what_not(tmp_path: Path) -> None:
    (tmp_path / "config.yml").write_text("web_port: 8042\nhosts:\n  - host1\n")
    output = tmp_path / "gpuherd.toml"
    result = CliRunner().invoke(command, [str(tmp_path / "config.yml"), "--output", str(output)])
    assert result.exit_code == 0
    assert result.output.splitlines() == [
        f"{tmp_path}/config.yml: the config.yml of the XML-RPC monitor with 1 host",
        "  - line 1: web_port 8042: the page listens on hub.listen; set that to use this port",
        "  + line 3: host host1",
        f"{output}: written; start the hub with: gpuherd hub --config {output} run",
    ]
    again = CliRunner().invoke(command, [str(tmp_path / "config.yml"), "--output", str(output)])
    assert again.exit_code == 0
    assert again.output.splitlines()[-1] == f"{output}: unchanged, nothing to add"


def test_nothing_understood_ends_with_1_and_writes_nothing(tmp_path: Path) -> None:
    output = tmp_path / "gpuherd.toml"
    result = CliRunner().invoke(command, [str(tmp_path / "absent"), "--output", str(output)])
    assert result.exit_code == 1
    assert "not recognised" in result.output
    assert "there is no such file" in result.output
    assert not output.exists()


def test_a_dry_run_shows_the_text(tmp_path: Path) -> None:
    (tmp_path / "hosts.txt").write_text("gpu1\n")
    output = tmp_path / "gpuherd.toml"
    result = CliRunner().invoke(command, [str(tmp_path / "hosts.txt"), "--output", str(output), "--dry-run"])
    assert result.exit_code == 0
    assert result.output.endswith('reach = { by = "node_info" }\n')
    assert not output.exists()
