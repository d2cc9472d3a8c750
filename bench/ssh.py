"""SSH: what following nodes over one long-lived channel each costs the hub, against asking anew for every sample.

Everything is real but the GPUs: an sshd on loopback, the script's own output (with an nvidia-smi that prints eight
GPUs), the hub's own code in a process of its own. All three ways fetch recorded rounds of the same size.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import msgspec

from bench.measure import Figure, median
from bench.ssh_hub import Done, Job
from gpuherd.collect.remote import node_script
from gpuherd.wire.blocks import start_message

__all__ = ["measure_ssh"]

HOSTS = 100
POLLED_HOSTS = 4
MANY = 500
MANY_INTERVAL_SECONDS = 5.0
LATE_SECONDS = 1.0
US = 1e6
KIB = 1024

NVIDIA_SMI = r"""#!/bin/sh
case "$*" in
*--help-query-gpu*) for f in index uuid name pci.bus_id driver_version compute_cap mig.mode.current memory.total \
    memory.reserved memory.used utilization.gpu utilization.memory utilization.encoder utilization.decoder \
    temperature.gpu power.draw enforced.power.limit power.default_limit fan.speed clocks.current.sm \
    clocks.current.memory clocks.max.sm pstate clocks_event_reasons.active ecc.errors.corrected.volatile.total \
    ecc.errors.uncorrected.volatile.total; do printf '"%s"\n\n' $f; done ;;
*--query-gpu=*) read -r n <FOLDER/asked; echo $((n + 1)) >FOLDER/asked
    for i in 0 1 2 3 4 5 6 7; do v=$(((n * 37 + i * 11) % 64)); echo "$i, \
GPU-0000000$i-1111-2222-3333-444444444444, NVIDIA A100-SXM4-80GB, 00000000:0$i:00.0, 535.104.05, 8.0, Disabled, \
81920, 619, $((41231 + v)), $((36 + v)), $v, 0, 0, $((v / 8 + 50)), $((v + 300)).$((v + 10)), 400.00, 400.00, \
[N/A], $((1350 + v)), 1593, 1410, P0, 0x0000000000000004, 0, 0"; done ;;
*--query-compute-apps=*) i=0; for pid in PIDS; do
    echo "GPU-0000000$i-1111-2222-3333-444444444444, $pid, 40123"; i=$((i + 1)); done ;;
esac
"""

LOOP = """\
set -- $p
for i in 1 3 4 5; do eval "round$i=\\$(sed \\"s/^@TOKEN /@$3 /\\" FOLDER/round$i; echo .)"; done
n=1 i=3
printf '\\n@%s start 1\\n\\n@%s round 1\\n%s\\n@%s end 1\\n' $3 $3 "${round1%.}" $3
while sleep $4; do
    n=$((n + 1)) i=$(((n + 1) % 3 + 3))
    eval "later=\\$round$i"
    printf '\\n@%s round %s\\n%s\\n@%s end %s\\n' $3 $n "${later%.}" $3 $n
done
"""
"""Recorded rounds in turn, by the shell itself: the node's own work is not what is measured."""
TOKEN = "0" * 32


def _say(text: str) -> None:
    print(f"  {text}", file=sys.stderr, flush=True)


@contextmanager
def sshd(folder: Path) -> Iterator[int]:
    """Run an sshd that lets the benchmark's key in, any number of times at once."""
    program = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None or os.geteuid() != 0:
        raise SystemExit("the SSH benchmark needs root and openssh-server (scripts/provision)")
    Path("/run/sshd").mkdir(exist_ok=True)
    for name in ("host_key", "key"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    (folder / "sshd_config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {folder}/host_key\nAuthorizedKeysFile {folder}/key.pub\n"
        "PidFile none\nStrictModes no\nUsePAM no\nPermitRootLogin yes\nMaxStartups 1000\nMaxSessions 1000\n"
        f"LogLevel INFO\nSetEnv HOME=/nonexistent PATH={folder}:{os.environ['PATH']}\n"
    )
    host_key = " ".join((folder / "host_key.pub").read_text().split()[:2])
    (folder / "known_hosts").write_text(f"[127.0.0.1]:{port} {host_key}\n")
    (folder / "ssh_config").write_text("")
    with (folder / "sshd.log").open("wb") as log:
        server = subprocess.Popen([program, "-D", "-e", "-f", str(folder / "sshd_config")], stderr=log)
    try:
        while "listening" not in (folder / "sshd.log").read_text():
            if server.poll() is not None:
                raise SystemExit(f"sshd did not start: {(folder / 'sshd.log').read_text()}")
            time.sleep(0.05)
        yield port
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(20)


def logins(folder: Path) -> int:
    """Count the logins that sshd has logged."""
    return (folder / "sshd.log").read_text().count("Accepted publickey")


def record_rounds(folder: Path) -> int:
    """Keep the script's first round, with the facts, and three later ones; gives the bytes of one of those."""
    sleepers = [subprocess.Popen(["sleep", "600"]) for _ in range(8)]
    program = folder / "nvidia-smi"
    pids = " ".join(str(sleeper.pid) for sleeper in sleepers)
    program.write_text(NVIDIA_SMI.replace("PIDS", pids).replace("FOLDER", str(folder)))
    (folder / "asked").write_text("0\n")
    program.chmod(0o755)
    message = start_message(
        TOKEN, interval_seconds=1, deadline_seconds=10, command_lines="full", script=b""
    ).splitlines()[0]
    node = subprocess.Popen(
        ["sh", "-c", node_script().decode()],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"},
    )
    printed = b""
    try:
        assert node.stdin is not None
        assert node.stdout is not None
        node.stdin.write(message + b"\n")
        node.stdin.flush()
        while f"@{TOKEN} end 5\n".encode() not in printed:
            printed += os.read(node.stdout.fileno(), 65536)
    finally:
        for process in (node, *sleepers):
            process.terminate()
            process.wait(10)
    for number in (1, 3, 4, 5):
        begin, end = (f"\n@{TOKEN} {word} {number}\n".encode() for word in ("round", "end"))
        (folder / f"round{number}").write_bytes(printed.partition(begin)[2].partition(end)[0])
    return (folder / "round3").stat().st_size


class Hub:
    """A hub process with hosts connected."""

    def __init__(self, job: Job) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.ssh_hub"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._write(msgspec.json.encode(job).decode())

    def _write(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def measure(self, more_hosts: int = 0) -> Done:
        """Measure for as long as the job says, with that many hosts more."""
        self._write(str(more_hosts))
        assert self._process.stdout is not None
        done = msgspec.json.decode(self._process.stdout.readline(), type=Done)
        if done.failures:
            raise SystemExit(f"the benchmark's hosts failed: {done.failures}")
        return done

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def measure_ssh(seconds: float = 8.0, rounds: int = 3) -> list[Figure]:
    """Measure cost, logins, memory and a herd of 500 in one run."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with sshd(folder) as port:
            size = record_rounds(folder)
            job = Job(
                way="channel",
                port=port,
                folder=str(folder),
                hosts=HOSTS,
                interval_seconds=1.0,
                seconds=seconds,
                command=f"cat {folder}/round3",
                script=LOOP.replace("FOLDER", str(folder)).replace("TOKEN", TOKEN),
            )
            figures = _costs(folder, job, rounds, size)
            figures.append(_memory(job))
            figures.append(_many(folder, job))
            return figures


def _costs(folder: Path, job: Job, rounds: int, size: int) -> list[Figure]:
    jobs = {
        "channel": job,
        "read": msgspec.structs.replace(job, is_read=True),
        "exec": msgspec.structs.replace(job, way="exec"),
        "spawn": msgspec.structs.replace(job, way="spawn", hosts=POLLED_HOSTS),
    }
    costs: dict[str, list[float]] = {name: [] for name in jobs}
    logins_after_start = 0
    minutes = 0.0
    for number in range(rounds):
        for name, each in jobs.items():
            _say(f"{name}, round {number + 1} of {rounds}")
            with Hub(each) as hub:
                hub.measure()  # warms up, and waits until all are connected
                before, start = logins(folder), time.monotonic()
                done = hub.measure()
                if name == "channel":
                    logins_after_start += logins(folder) - before
                    minutes += (time.monotonic() - start) / 60
            costs[name].append(done.cpu_seconds / done.samples * US)
    cost = {name: median(values) for name, values in costs.items()}
    note = f"{HOSTS} hosts once a second, {size} bytes each"
    return [
        Figure(
            id="SSH",
            what="hub CPU per host-sample over a long-lived channel",
            value=round(cost["channel"]),
            unit="µs",
            against="one asyncssh exec per sample on a kept connection",
            baseline=round(cost["exec"]),
            ratio=round(cost["exec"] / cost["channel"], 2),
            goal="≥ 5× cheaper",
            met=cost["exec"] / cost["channel"] >= 5,
            note=note,
        ),
        Figure(
            id="SSH",
            what="the same",
            value=round(cost["channel"]),
            unit="µs",
            against="starting ssh for each sample",
            baseline=round(cost["spawn"]),
            ratio=round(cost["spawn"] / cost["channel"], 1),
            goal="≥ 100× cheaper",
            met=cost["spawn"] / cost["channel"] >= 100,
            note=f"ssh: {POLLED_HOSTS} hosts; its processes' CPU included",
        ),
        Figure(
            id="SSH",
            what="the same, and made into a report of eight GPUs",
            value=round(cost["read"]),
            unit="µs",
        ),
        Figure(
            id="SSH",
            what="logins per minute after the start",
            value=logins_after_start / minutes,
            unit="logins",
            goal="0",
            met=logins_after_start == 0,
        ),
    ]


def _memory(job: Job) -> Figure:
    _say("memory with 50, then 250 hosts")
    with Hub(msgspec.structs.replace(job, hosts=50, interval_seconds=5.0, seconds=12.0, is_read=True)) as hub:
        few, many = hub.measure(), hub.measure(200)
    per_host = (many.rss_bytes - few.rss_bytes) / 200
    return Figure(
        id="SSH",
        what="memory of the hub per connected host",
        value=round(per_host / KIB),
        unit="KiB RSS",
        goal="≤ 200 KB",
        met=per_host <= 200_000,
        note="growth from 50 to 250 hosts, facts and tables of eight GPUs kept",
    )


def _many(folder: Path, job: Job) -> Figure:
    _say(f"{MANY} hosts every {MANY_INTERVAL_SECONDS:g} s for a minute")
    herd = msgspec.structs.replace(
        job, hosts=MANY, interval_seconds=MANY_INTERVAL_SECONDS, seconds=60.0, is_read=True
    )
    before = logins(folder)
    with Hub(herd) as hub:
        done = hub.measure()
        made = logins(folder) - before
    late = sum(1 for gap in done.gaps if gap > MANY_INTERVAL_SECONDS + LATE_SECONDS)
    return Figure(
        id="SSH",
        what=f"late samples of {MANY} hosts on one sshd every {MANY_INTERVAL_SECONDS:g} s, hub, sshd and shells "
        "sharing the machine",
        value=late,
        unit=f"of {len(done.gaps)}",
        goal="0",
        met=late == 0 and made == MANY,
        note=f"late: more than {LATE_SECONDS:g} s after its time; the longest gap was {max(done.gaps):.2f} s; "
        f"hub {done.cpu_seconds / herd.seconds:.3f} cores, reports made; {made} logins, all reporting after "
        f"{done.start_seconds:.0f} s; the nodes' loop prints recorded rounds",
    )
