"""Who a pid is: real processes where possible, a written /proc where not."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuherd.collect.cgroups import container_of, job_of
from gpuherd.collect.processes import ProcessLookup, command_text, parse_stat
from gpuherd.model.text import COMMAND_LENGTH

STAT = (
    b"%d (%b) %b 1 1 1 0 -1 4194560 1 0 0 0 %d %d 0 0 20 0 1 0 %d 1000000 %d 18446744073709551615 1 1 0 0 0"
)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Proc:
    """A written /proc."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "stat").write_bytes(b"cpu  1 2 3 4\nbtime 1700000000\n")

    def process(
        self,
        pid: int,
        *,
        start: int = 5000,
        name: bytes = b"python",
        state: bytes = b"S",
        cpu: int = 0,
        uid: int = 1000,
        cmdline: bytes = b"python\0train.py\0",
        cgroup: bytes = b"0::/user.slice\n",
        pages: int = 10,
    ) -> Path:
        folder = self.root / str(pid)
        folder.mkdir(exist_ok=True)
        # Written in place: like the kernel's file, an open descriptor sees the new content.
        (folder / "stat").write_bytes(STAT % (pid, name, state, cpu, 0, start, pages))
        (folder / "status").write_bytes(b"Name:\tx\nUid:\t%d\t0\t0\t0\n" % uid)
        (folder / "cmdline").write_bytes(cmdline)
        (folder / "cgroup").write_bytes(cgroup)
        return folder


@pytest.fixture
def proc(tmp_path: Path) -> Proc:
    return Proc(tmp_path)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def lookup(proc: Proc, clock: Clock) -> Iterator[ProcessLookup]:
    made = ProcessLookup(
        proc.root, monotonic=clock, user_name={0: "root", 1000: "user01", 1001: "user02"}.get, trust_pids=True
    )
    yield made
    made.close()


def test_a_process_is_described(proc: Proc, lookup: ProcessLookup) -> None:
    proc.process(7, cgroup=b"0::/system.slice/docker-" + b"ab" * 32 + b".scope\n")
    process, sample = lookup.look_up([7])[7]
    assert (process.pid, process.user, process.command) == (7, "user01", "python train.py")
    assert process.started_at == 1700000000 + 5000 / os.sysconf("SC_CLK_TCK")
    assert process.container == "docker:abababababab"
    assert not process.is_gone
    assert sample.cpu_cores is None
    assert sample.memory_bytes == 10 * os.sysconf("SC_PAGE_SIZE")


def test_cpu_is_what_was_used_between_two_looks(proc: Proc, clock: Clock, lookup: ProcessLookup) -> None:
    proc.process(7, cpu=1000)
    first = lookup.look_up([7])[7][0]
    proc.process(7, cpu=1000 + 3 * os.sysconf("SC_CLK_TCK"))
    clock.now += 2
    process, sample = lookup.look_up([7])[7]
    assert sample.cpu_cores == pytest.approx(1.5)
    assert process is first


def test_a_reused_pid_is_a_new_process(proc: Proc, clock: Clock, lookup: ProcessLookup) -> None:
    proc.process(7)
    lookup.look_up([7])
    proc.process(7, start=9000, uid=1001, cmdline=b"other\0")
    clock.now += 1
    process, sample = lookup.look_up([7])[7]
    assert (process.user, process.command, sample.cpu_cores) == ("user02", "other", None)


def test_exec_is_noticed_by_its_name(proc: Proc, lookup: ProcessLookup) -> None:
    proc.process(7, name=b"bash", cmdline=b"bash\0run.sh\0")
    lookup.look_up([7])
    proc.process(7, name=b"python", cmdline=b"python\0train.py\0")
    assert lookup.look_up([7])[7][0].command == "python train.py"


def test_a_zombie_is_gone_but_keeps_its_owner(proc: Proc, lookup: ProcessLookup) -> None:
    proc.process(7)
    lookup.look_up([7])
    proc.process(7, state=b"Z", cmdline=b"")
    process, sample = lookup.look_up([7])[7]
    assert process.is_gone
    assert (process.user, process.command) == ("user01", "python train.py")
    assert sample.memory_bytes is None


def test_a_zombie_met_late(proc: Proc, lookup: ProcessLookup) -> None:
    proc.process(7, state=b"Z", cmdline=b"", name=b"python")
    process, _ = lookup.look_up([7])[7]
    assert (process.is_gone, process.user, process.command) == (True, "user01", "[python]")


def test_unknown_pid_is_gone_without_owner(lookup: ProcessLookup) -> None:
    process, sample = lookup.look_up([4_000_000_000])[4_000_000_000]
    assert (process.is_gone, process.user, process.command) == (True, None, None)
    assert sample.cpu_cores is None


def test_pids_are_not_believed_in_a_foreign_namespace(proc: Proc) -> None:
    folder = proc.process(7)
    lookup = ProcessLookup(proc.root, user_name={1000: "user01"}.get, trust_pids=False)
    process, _ = lookup.look_up([7])[7]
    assert (process.user, process.command, process.is_gone) == (None, None, False)
    # One that holds a GPU is what the driver means.
    (folder / "fd").mkdir()
    (folder / "fd" / "3").symlink_to("/dev/nvidia0")
    assert lookup.look_up([7])[7][0].user == "user01"
    lookup.close()


def test_a_process_hidden_from_us_shows_its_folders_owner(tmp_path: Path) -> None:
    proc = Proc(tmp_path)
    folder = tmp_path / "7"
    folder.mkdir()  # hidepid=1: the folder is there, its files cannot be read
    lookup = ProcessLookup(proc.root, user_name=lambda uid: f"uid{uid}", trust_pids=True)
    process, _ = lookup.look_up([7])[7]
    uid = folder.stat().st_uid
    # Root's folder may be that of any process that protects itself.
    assert process.user == (f"uid{uid}" if uid else None)
    assert not process.is_gone


def test_a_process_hidden_altogether_is_not_gone(tmp_path: Path) -> None:
    proc = Proc(tmp_path)
    lookup = ProcessLookup(proc.root, exists=lambda pid: pid == 7, trust_pids=True)
    found = lookup.look_up([7, 8])
    assert [found[pid][0].is_gone for pid in (7, 8)] == [False, True]


@pytest.mark.parametrize("is_hidden", [True, False])
def test_hidepid_is_noticed(proc: Proc, is_hidden: bool) -> None:
    """hidepid=2 leaves out the folders of others; with hidepid=1 their files cannot be read."""
    (proc.root / "self").mkdir()
    (proc.root / "self" / "stat").write_bytes(b"7 (agent)")
    (proc.root / "1").mkdir()
    if not is_hidden:
        (proc.root / "1" / "stat").write_bytes(b"1 (init)")
    lookup = ProcessLookup(proc.root, trust_pids=True)
    assert (lookup.hidden is not None) == is_hidden
    assert not is_hidden or "hidepid" in (lookup.hidden or "")


def test_overflow_user_is_unknown_in_a_user_namespace(proc: Proc) -> None:
    (proc.root / "self").mkdir()
    (proc.root / "self" / "uid_map").write_bytes(b"         0       1000          1\n")
    proc.process(7, uid=65534)
    lookup = ProcessLookup(proc.root, user_name=lambda uid: "nobody", trust_pids=True)
    assert lookup.look_up([7])[7][0].user is None
    lookup.close()


def test_names_are_asked_once(proc: Proc, clock: Clock) -> None:
    asked: list[int] = []

    def name(uid: int) -> None:
        asked.append(uid)

    lookup = ProcessLookup(proc.root, user_name=name, monotonic=clock, trust_pids=True)
    for pid in range(10, 15):
        proc.process(pid, uid=4242)
    found = lookup.look_up(range(10, 15))
    assert {process.user for process, _ in found.values()} == {"4242"}
    assert asked == [4242]
    lookup.close()


def test_many_processes_do_not_use_up_descriptors(proc: Proc, lookup: ProcessLookup) -> None:
    for pid in range(10, 410):
        proc.process(pid)
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(2):
        lookup.look_up(range(10, 410))
    assert len(list(Path("/proc/self/fd").iterdir())) - before < 300
    lookup.look_up([])
    assert len(list(Path("/proc/self/fd").iterdir())) - before < 10


def test_a_real_process(clock: Clock) -> None:
    code = "print(flush=True); input()"
    lookup = ProcessLookup(monotonic=clock, trust_pids=True)
    with subprocess.Popen(
        [sys.executable, "-c", code, "--token", "hunter2"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()  # it runs
        process, sample = lookup.look_up([child.pid])[child.pid]
        child.kill()
    assert process.command is not None
    assert process.command.endswith(f"-c {code} --token ***")
    assert process.user
    assert process.started_at is not None
    assert abs(process.started_at - time.time()) < 60
    assert sample.memory_bytes
    assert lookup.look_up([child.pid])[child.pid][0].is_gone
    lookup.close()


@pytest.mark.parametrize("name", [b"a) R 1 (b", b"(", b")", b"", b"x y z"])
def test_odd_process_names(name: bytes) -> None:
    stat = parse_stat(STAT % (7, name, b"S", 3, 4, 5000, 10))
    assert stat is not None
    assert (stat.name, stat.state, stat.cpu_ticks, stat.start_ticks, stat.resident_pages) == (
        name,
        b"S",
        7,
        5000,
        10,
    )


@pytest.mark.parametrize("content", [b"", b"7", b"7 (x) S 1", b"\xff" * 100, b"7 (x) S " + b"a " * 40])
def test_damaged_stat(content: bytes) -> None:
    assert parse_stat(content) is None


@pytest.mark.parametrize(
    ("content", "mode", "expected"),
    [
        (b"/usr/bin/python3\0-u\0train.py\0", "full", "/usr/bin/python3 -u train.py"),
        (b"/usr/bin/python3\0-u\0train.py\0", "program", "python3"),
        (b"/usr/bin/python3\0-u\0train.py\0", "none", None),
        (b"python\0--token\0abc\0", "full", "python --token ***"),
        (b"", "full", "[short]"),
        (b"\0\0", "full", "[short]"),
        (b"a\xffb\0\x1b[31m\0", "full", "a�b �[31m"),
        (b"python\0-c\0a=1\nb=2\0", "full", "python -c a=1 b=2"),
        (b"nginx: worker process\0\0\0", "program", "nginx:"),
    ],
)
def test_commands(content: bytes, mode: str, expected: str | None) -> None:
    assert command_text(content, b"short", mode) == expected  # type: ignore[arg-type]


def test_a_huge_command_line_is_cut_without_half_secrets() -> None:
    content = b"python\0" + b"x" * 16_000 + b" hf_" + b"a1B2" * 100_000
    text = command_text(content[: 4 * 4096 + 4], b"python", "full")
    assert text is not None
    assert len(text) <= COMMAND_LENGTH
    assert "a1B2" not in text


ID = "0123456789ab" + "cd" * 26


@pytest.mark.parametrize(
    ("cgroup", "container"),
    [
        (f"0::/system.slice/docker-{ID}.scope", "docker:0123456789ab"),
        (f"12:pids:/docker/{ID}", "docker:0123456789ab"),
        (f"0::/machine.slice/libpod-{ID}.scope/container", "podman:0123456789ab"),
        (f"0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-{ID}.scope", "kubernetes:0123456789ab"),
        (f"5:memory:/kubepods/besteffort/pod1/{ID}", "kubernetes:0123456789ab"),
        (f"0::/kubepods.slice/crio-{ID}.scope", "kubernetes:0123456789ab"),
        ("0::/lxc.payload.web01/init.scope", "lxc:web01"),
        ("4:cpu:/lxc/web01", "lxc:web01"),
        ("0::/machine.slice/machine-web01.scope", "nspawn:web01"),
        ("0::/user.slice/user-1000.slice/session-3.scope", None),
        ("", None),
    ],
)
def test_containers(cgroup: str, container: str | None) -> None:
    assert container_of(cgroup.encode() + b"\n") == container


@pytest.mark.parametrize(
    ("cgroup", "job"),
    [
        ("0::/system.slice/slurmstepd.scope/job_123/step_0/user/task_0", "slurm:123"),
        ("4:memory:/slurm/uid_1000/job_77/step_batch", "slurm:77"),
        ("9:devices:/slurm_node1/uid_1000/job_78", "slurm:78"),
        ("0::/user.slice", None),
        ("0::/job_1", None),
    ],
)
def test_jobs(cgroup: str, job: str | None) -> None:
    assert job_of(cgroup.encode() + b"\n") == job
