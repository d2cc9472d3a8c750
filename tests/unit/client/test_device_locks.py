"""Locks on devices among processes and users of one machine."""

from __future__ import annotations

import multiprocessing
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from gpuherd.client.device_locks import DeviceLocks, taken_on_machine
from gpuherd.model.errors import Failed
from support.running import PATIENCE_SECONDS

NOBODY = 65_534


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder that other users can reach."""
    for part in (tmp_path, *tmp_path.parents):
        if part.stat().st_uid == os.getuid() and part != Path("/tmp"):
            part.chmod(part.stat().st_mode | 0o055)
    return tmp_path / "locks"


def test_one_at_a_time_and_all_or_none(folder: Path) -> None:
    first, second = DeviceLocks([folder]), DeviceLocks([folder])
    assert first.take({"GPU-a", "GPU-b"})
    assert first.take({"GPU-a"})
    assert not second.take({"GPU-c", "GPU-a"})
    assert second.taken_elsewhere(["GPU-a", "GPU-b", "GPU-c", "GPU-d"]) == {"GPU-a", "GPU-b"}
    assert first.taken_elsewhere(["GPU-a", "GPU-c"]) == frozenset()
    first.release(["GPU-a"])
    assert second.take({"GPU-c", "GPU-a"})
    first.release()
    assert second.take({"GPU-b"})


def test_a_lock_ends_with_its_process_even_if_it_is_killed(folder: Path) -> None:
    code = (
        "import sys, pathlib; from gpuherd.client.device_locks import DeviceLocks\n"
        "locks = DeviceLocks([pathlib.Path(sys.argv[1])]); print(locks.take({'GPU-a'}), flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "True\n"
        locks = DeviceLocks([folder])
        assert not locks.take({"GPU-a"})
        other.kill()
        other.wait()
        assert locks.take({"GPU-a"})


def test_the_folder_is_open_to_all_but_nobody_removes_what_is_anothers(folder: Path) -> None:
    umask = os.umask(0o077)
    try:
        assert DeviceLocks([folder]).take({"GPU-a"})
    finally:
        os.umask(umask)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o1777
    assert stat.S_IMODE((folder / "GPU-a").stat().st_mode) == 0o644
    assert [file.name for file in folder.iterdir()] == ["GPU-a"]


def _as_nobody(folder: Path, answers: multiprocessing.Queue[object]) -> None:
    os.setgid(NOBODY)
    os.setuid(NOBODY)
    locks = DeviceLocks([folder])
    answers.put((locks.taken_elsewhere(["GPU-a", "GPU-b"]), locks.take({"GPU-a"}), locks.take({"GPU-b"})))


@pytest.mark.skipif(os.getuid() != 0, reason="needs to be two users")
def test_locks_of_other_users_are_respected(folder: Path) -> None:
    mine = DeviceLocks([folder])
    assert mine.take({"GPU-a", "GPU-b"})
    mine.release(["GPU-b"])
    context = multiprocessing.get_context("fork")
    answers: multiprocessing.Queue[object] = context.Queue()
    process = context.Process(target=_as_nobody, args=(folder, answers))
    process.start()
    assert answers.get(timeout=PATIENCE_SECONDS) == ({"GPU-a"}, False, True)
    process.join(PATIENCE_SECONDS)


def test_locks_in_other_folders_are_respected(folder: Path, tmp_path: Path) -> None:
    late = tmp_path / "late"
    folders = [late / "locks", folder]
    before = DeviceLocks(folders)
    late.mkdir()
    after = DeviceLocks(folders)
    assert (before.folder, after.folder) == (folder, late / "locks")
    assert before.take({"GPU-a"})
    assert after.taken_elsewhere(["GPU-a", "GPU-b"]) == {"GPU-a"}
    assert not after.take({"GPU-b", "GPU-a"})
    assert after.take({"GPU-b"})
    assert before.taken_elsewhere(["GPU-a", "GPU-b"]) == {"GPU-b"}
    assert not before.take({"GPU-b"})
    after.release()
    assert before.take({"GPU-b"})


def test_to_look_makes_nothing(folder: Path) -> None:
    environment = {"GPUHERD_LOCK_DIR": str(folder)}
    assert taken_on_machine(environment, ["GPU-a"]) == frozenset()
    assert not folder.exists()
    locks = DeviceLocks.of_machine(environment)
    assert locks.take({"GPU-a"})
    assert taken_on_machine(environment, ["GPU-a", "GPU-b"]) == {"GPU-a"}
    assert [file.name for file in folder.iterdir()] == ["GPU-a"]


def test_a_folder_that_others_may_not_use_is_told(folder: Path, tmp_path: Path) -> None:
    remedy = f"sudo install -d -o root -g root -m 1777 {folder}"
    spare = tmp_path / "spare"
    assert DeviceLocks([folder, spare]).doubt is None
    folder.chmod(0o755)
    assert DeviceLocks([folder]).doubt is None
    told = DeviceLocks([folder, spare]).doubt
    assert told is not None
    assert told.endswith(f"{folder} is not open to all users; fix it with: {remedy}")
    folder.chmod(0o777)
    told = DeviceLocks([folder, spare]).doubt
    assert told is not None
    assert f"{folder} exists but cannot be used (anyone can remove" in told
    assert told.endswith(remedy)
    assert DeviceLocks([tmp_path / "not" / "there", spare]).doubt is None


@pytest.mark.skipif(os.getuid() != 0, reason="needs to be two users")
def test_a_folder_of_another_user_is_told(folder: Path) -> None:
    locks = DeviceLocks([folder])
    os.chown(folder, 12_345, 12_345)
    assert "belongs to user 12345, who can remove the locks of others; fix it" in str(locks.doubt)
    os.chown(folder, 0, 0)
    assert locks.doubt is None


def test_nothing_is_followed_or_written(folder: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    victim.chmod(0o600)
    locks = DeviceLocks([folder])
    (folder / "GPU-a").symlink_to(victim)
    os.mkfifo(folder / "GPU-b")
    (folder / "GPU-c").mkdir()
    for uuid in ("GPU-a", "GPU-b", "GPU-c"):
        assert not locks.take({uuid})
        assert locks.taken_elsewhere([uuid]) == {uuid}
    assert (victim.read_text(), stat.S_IMODE(victim.stat().st_mode)) == ("precious", 0o600)
    assert locks.take({"../victim"})
    assert sorted(file.name for file in tmp_path.iterdir()) == ["locks", "victim"]


def test_a_folder_that_cannot_be_trusted_is_not_used(folder: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o777)
    elsewhere.chmod(0o777)
    folder.symlink_to(elsewhere)
    with pytest.raises(Failed, match="GPUHERD_LOCK_DIR"):
        DeviceLocks([folder])
    with pytest.raises(Failed, match="anyone can remove files of others there"):
        DeviceLocks([elsewhere])
    with pytest.raises(Failed, match="no folder for GPU locks"):
        DeviceLocks([tmp_path / "not" / "there"])
    spare = tmp_path / "spare"
    assert DeviceLocks([folder, elsewhere, spare]).folder == spare


def test_which_folder(folder: Path) -> None:
    assert DeviceLocks.of_machine({"GPUHERD_LOCK_DIR": str(folder)}).folder == folder


def test_a_file_that_was_tidied_away_is_made_anew(folder: Path) -> None:
    first, second = DeviceLocks([folder]), DeviceLocks([folder])
    assert first.take({"GPU-a"})
    first.release()
    (folder / "GPU-a").unlink()
    assert second.take({"GPU-a"})
    assert not first.take({"GPU-a"})
