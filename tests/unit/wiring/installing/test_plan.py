"""`gpuherd install` below a folder: what it writes, that it writes it once, and what it leaves."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from gpuherd.client.device_locks import SHARED_FOLDERS
from gpuherd.model.errors import Misconfigured, Refused
from gpuherd.wiring.installing.executable import as_word, check_reachable
from gpuherd.wiring.installing.plan import Installation, Part, unit_text

HUB_FILES = [
    "/etc/gpuherd/gpuherd.toml",
    "/etc/sysusers.d/gpuherd.conf",
    "/etc/systemd/system/gpuherd-hub.service",
    "/etc/systemd/system/multi-user.target.wants/gpuherd-hub.service",
]
AGENT_FILES = [
    "/etc/gpuherd/gpuherd.toml",
    "/etc/gpuherd/join-token",
    "/etc/tmpfiles.d/gpuherd.conf",
    "/etc/systemd/system/gpuherd-agent.service",
    "/etc/systemd/system/multi-user.target.wants/gpuherd-agent.service",
]
HUB = {"hub_url": "http://127.0.0.1:8470"}


def installation(root: Path, *, is_only_check: bool = False) -> Installation:
    return Installation(root, is_only_check=is_only_check, executable="/opt/gpuherd/bin/gpuherd")


def files_in(root: Path) -> set[str]:
    return {f"/{path.relative_to(root)}" for path in root.rglob("*") if path.is_symlink() or path.is_file()}


def test_a_check_changes_nothing_and_tells_the_same(tmp_path: Path) -> None:
    checked = installation(tmp_path, is_only_check=True).hub({})
    assert files_in(tmp_path) == set()
    assert checked.changed == installation(tmp_path).hub({}).changed == HUB_FILES
    assert files_in(tmp_path) == {*HUB_FILES}


def test_a_second_run_changes_nothing(tmp_path: Path) -> None:
    installation(tmp_path).hub({"listen": "0.0.0.0:8470"})
    installation(tmp_path).agent(HUB, "ghj_token")
    times = {path: path.lstat().st_mtime_ns for path in tmp_path.rglob("*")}
    hub = installation(tmp_path).hub({"listen": "0.0.0.0:8470"})
    agent = installation(tmp_path).agent(HUB, "ghj_token")
    assert (hub.changed, hub.unchanged) == ([], HUB_FILES)
    assert (agent.changed, agent.unchanged) == ([], AGENT_FILES)
    assert {path: path.lstat().st_mtime_ns for path in tmp_path.rglob("*")} == times


def test_only_root_may_read_the_token_and_everyone_the_configuration(tmp_path: Path) -> None:
    installation(tmp_path).agent(HUB, "ghj_token")
    token, config = tmp_path / "etc/gpuherd/join-token", tmp_path / "etc/gpuherd/gpuherd.toml"
    assert stat.S_IMODE(token.stat().st_mode) == 0o600
    assert token.read_text() == "ghj_token\n"
    assert stat.S_IMODE(config.stat().st_mode) == 0o644


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives folders away")
@pytest.mark.skipif(shutil.which("systemd-tmpfiles") is None, reason="needs systemd-tmpfiles")
def test_the_folder_of_locks_is_roots_whoever_made_it(tmp_path: Path) -> None:
    installation(tmp_path).agent(HUB, "ghj_token")
    folder = tmp_path / SHARED_FOLDERS[0].relative_to("/")
    folder.mkdir(parents=True, mode=0o700)
    os.chown(folder, 12_345, 12_345)
    command = ["systemd-tmpfiles", "--create", f"--root={tmp_path}", "gpuherd.conf"]
    subprocess.run(command, check=True, capture_output=True)
    made = folder.stat()
    assert (made.st_uid, made.st_gid, stat.S_IMODE(made.st_mode)) == (0, 0, 0o1777)


def test_an_enrolled_node_needs_no_token_and_keeps_none(tmp_path: Path) -> None:
    credential = tmp_path / "var/lib/gpuherd-agent/credential"
    credential.parent.mkdir(parents=True)
    credential.write_text("ghn_secret\n")
    assert "/etc/gpuherd/join-token" not in installation(tmp_path).agent(HUB, "ghj_token").changed
    assert installation(tmp_path).agent(HUB).changed == []


def test_a_node_goes_over_to_another_hub_only_with_a_token_of_it(tmp_path: Path) -> None:
    credential = tmp_path / "var/lib/gpuherd-agent/credential"
    credential.parent.mkdir(parents=True)
    credential.write_text("ghn_secret\n")
    credential.with_name("credential.hub").write_text("http://127.0.0.1:8470\n")
    assert "/etc/gpuherd/join-token" not in installation(tmp_path).agent(HUB, "ghj_token").changed
    other = {"hub_url": "https://other.example.org"}
    with pytest.raises(
        Misconfigured, match=r"this node is enrolled at http://127.0.0.1:8470: to enrol it at the other hub"
    ):
        installation(tmp_path).agent(other)
    assert credential.exists()
    installation(tmp_path).agent(other, "ghj_other")
    assert not credential.exists()
    assert (tmp_path / "etc/gpuherd/join-token").read_text() == "ghj_other\n"


def test_a_node_without_token_is_told_how_to_get_one(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match="gpuherd token create"):
        installation(tmp_path).agent(HUB)
    assert files_in(tmp_path) == set()


def test_a_node_that_the_hub_dials_needs_no_token(tmp_path: Path) -> None:
    config = tmp_path / "etc/gpuherd/gpuherd.toml"
    config.parent.mkdir(parents=True)
    config.write_text('[agent]\nlisten = "0.0.0.0"\n')
    outcome = installation(tmp_path).agent({})
    assert "/etc/gpuherd/gpuherd.toml" in outcome.unchanged


def test_what_was_edited_stays_and_nothing_else_is_written(tmp_path: Path) -> None:
    installation(tmp_path).hub({})
    config = tmp_path / "etc/gpuherd/gpuherd.toml"
    config.write_text(config.read_text() + "# mine\n")
    config.chmod(0o640)
    before = files_in(tmp_path)
    with pytest.raises(Refused, match="hub_url"):
        installation(tmp_path).agent(HUB, "ghj_token")
    assert files_in(tmp_path) == before
    assert installation(tmp_path).hub({}).changed == []
    assert stat.S_IMODE(config.stat().st_mode) == 0o640


def test_a_configuration_to_begin_with_is_taken_unless_another_is_there(tmp_path: Path) -> None:
    mine = '# mine\n[hub]\nlisten = "127.0.0.1:9000"\n'
    installation(tmp_path).hub({}, mine)
    config = tmp_path / "etc/gpuherd/gpuherd.toml"
    assert config.read_text() == mine
    assert installation(tmp_path).hub({}, mine).changed == []
    with pytest.raises(Misconfigured, match="differs from the file given with --config"):
        installation(tmp_path).hub({}, mine + "# more\n")
    assert config.read_text() == mine


@pytest.mark.parametrize("part", ["hub", "agent"])
def test_removing_leaves_configuration_and_data(tmp_path: Path, part: Part) -> None:
    installation(tmp_path).hub({})
    installation(tmp_path).agent(HUB, "ghj_token")
    data = tmp_path / "var/lib/gpuherd/records.sqlite"
    data.parent.mkdir(parents=True)
    data.touch()
    removed = installation(tmp_path).remove(part)
    assert set(removed.changed) == {*(HUB_FILES if part == "hub" else AGENT_FILES)} - {HUB_FILES[0]}
    assert {"/etc/gpuherd/gpuherd.toml", "/var/lib/gpuherd/records.sqlite"} <= files_in(tmp_path)
    assert not any(f"gpuherd-{part}.service" in path for path in files_in(tmp_path))
    assert installation(tmp_path).remove(part).changed == []


def test_the_unit_of_a_package_is_used_as_it_is(tmp_path: Path) -> None:
    packaged = tmp_path / "lib/systemd/system/gpuherd-hub.service"
    packaged.parent.mkdir(parents=True)
    packaged.write_text(unit_text("hub", "/usr/bin/gpuherd"))
    outcome = Installation(tmp_path, executable="/usr/bin/gpuherd").hub({})
    link = "/etc/systemd/system/multi-user.target.wants/gpuherd-hub.service"
    assert outcome.changed == ["/etc/gpuherd/gpuherd.toml", link]
    assert os.readlink(tmp_path / link[1:]) == "/lib/systemd/system/gpuherd-hub.service"  # noqa: PTH115


@pytest.mark.parametrize("mark", ["updates overwrite this file", "this file is written anew by updates"])
def test_a_unit_of_ours_does_not_hide_the_one_of_a_package(tmp_path: Path, mark: str) -> None:
    installation(tmp_path).hub({})
    ours = tmp_path / "etc/systemd/system/gpuherd-hub.service"
    ours.write_text(ours.read_text().replace("updates overwrite this file", mark))
    packaged = tmp_path / "lib/systemd/system/gpuherd-hub.service"
    packaged.parent.mkdir(parents=True)
    packaged.write_text(unit_text("hub", "/usr/bin/gpuherd"))
    outcome = Installation(tmp_path, executable="/usr/bin/gpuherd").hub({})
    assert "/etc/systemd/system/gpuherd-hub.service" in outcome.changed
    assert not (tmp_path / "etc/systemd/system/gpuherd-hub.service").exists()


def test_folders_can_be_entered_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        installation(tmp_path).hub({})
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "etc/gpuherd").stat().st_mode) == 0o755


def test_a_configuration_that_others_may_not_read_stays_so(tmp_path: Path) -> None:
    installation(tmp_path).hub({}, "# mine\n", is_config_secret=True)
    assert stat.S_IMODE((tmp_path / "etc/gpuherd/gpuherd.toml").stat().st_mode) == 0o640


@pytest.mark.parametrize(
    ("path", "word"),
    [
        ("/opt/g/gpuherd", "/opt/g/gpuherd"),
        ("/opt/my herd/g", '"/opt/my herd/g"'),
        ("/o/50%$x", '"/o/50%%$$x"'),
    ],
)
def test_a_path_is_one_word_to_systemd(path: str, word: str) -> None:
    assert as_word(path) == word


@pytest.mark.parametrize("version", [None, 247, 252])
def test_an_old_systemd_is_given_no_key_it_does_not_know(version: int | None) -> None:
    assert "RestartSteps" not in unit_text("hub", "/usr/bin/gpuherd", version)


def test_a_new_systemd_waits_longer_each_time() -> None:
    text = unit_text("agent", "/usr/bin/gpuherd", 254)
    assert "RestartSteps=8\nRestartMaxDelaySec=120\n" in text
    assert "@" not in text.replace("@system-service", "").replace("@privileged @resources", "")


@pytest.mark.parametrize("place", ["/root/.local/share/uv/tools/gpuherd", "/home/ada/venv", "/tmp/venv"])
def test_a_gpuherd_that_services_cannot_see_is_not_installed(place: str) -> None:
    with pytest.raises(Misconfigured, match=rf"{place}: services run as their own users"):
        check_reachable((place,))


def test_a_folder_that_is_closed_to_others_is_not_seen_either(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match="services run as their own users"):
        check_reachable((str(tmp_path),))
    check_reachable(("/usr",))


def test_a_target_that_cannot_be_written_is_told_and_nothing_is_left(tmp_path: Path) -> None:
    (tmp_path / "etc").write_text("a file where a folder should be")
    with pytest.raises(Misconfigured, match="cannot be written: Not a directory"):
        installation(tmp_path).hub({})
    assert files_in(tmp_path) == {"/etc"}
