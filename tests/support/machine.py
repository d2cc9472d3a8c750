"""A whole machine for a test: systemd as its first process, in systemd-nspawn, on a throw-away layer over one tree.

    with booted(tmp_path, Lan()) as machine:
        machine.run("systemctl", "is-active", "ssh")

Everything a machine changes is in its own layer. Its mounts are in a mount namespace of their own and its processes
in a pid namespace that ends with the test's process: nothing is left when a run is killed, except an idle bridge,
which the next run takes away.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Self

import pytest

from support.machine_tree import TreeError, machine_tree

__all__ = ["Lan", "Machine", "booted", "need_machines"]

BOOT_SECONDS = 60.0
COMMAND_SECONDS = 120.0
# Without a systemd outside, nspawn ends with this status when the machine wants to boot again.
_BOOT_AGAIN = 'while "$@"; [ $? = 133 ]; do :; done'
_ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}


def need_machines() -> None:
    """Skip where no machine can be booted, saying why."""
    if os.geteuid() != 0:
        pytest.skip("not root: no machine can be booted")
    for program, package in (
        ("systemd-nspawn", "systemd-container"),
        ("mmdebstrap", "mmdebstrap"),
        ("nsenter", "util-linux"),
        ("ip", "iproute2"),
    ):
        if shutil.which(program) is None:
            pytest.skip(f"no {program}: install {package} (scripts/provision)")


class Lan:
    """A bridge on this machine to which machines are plugged; `close` takes it away. Parallel runs get different ones.

    Machine number 2 has the address ``10.213.N.2``, and so on; this machine is number 1.
    """

    def __init__(self) -> None:
        need_machines()
        self.bridge, self._prefix = self._make()
        self._last_host = 1

    @staticmethod
    def _make() -> tuple[str, str]:
        for number in range(1, 250):
            bridge = f"gpuherd{number}"
            _reclaim(bridge)
            # To make it is to own it: the kernel lets only one succeed.
            made = subprocess.run(
                ["ip", "link", "add", bridge, "type", "bridge"], stderr=subprocess.DEVNULL, check=False
            )
            if made.returncode != 0:
                continue
            prefix = f"10.213.{number}"
            subprocess.run(["ip", "link", "set", bridge, "alias", f"pid {os.getpid()}", "up"], check=True)
            subprocess.run(["ip", "address", "add", f"{prefix}.1/24", "dev", bridge], check=True)
            return bridge, prefix
        pytest.skip("no bridge can be made on this machine (ip link add type bridge)")

    @property
    def own_address(self) -> str:
        """Where machines reach this one."""
        return f"{self._prefix}.1"

    def next_address(self) -> str:
        """Give an address that no machine has yet."""
        self._last_host += 1
        return f"{self._prefix}.{self._last_host}"

    def close(self) -> None:
        """Take the bridge away."""
        subprocess.run(["ip", "link", "delete", self.bridge], check=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _reclaim(bridge: str) -> None:
    """Take away a bridge whose maker is gone."""
    with contextlib.suppress(OSError, ValueError):
        maker = int(Path(f"/sys/class/net/{bridge}/ifalias").read_text().removeprefix("pid "))
        if not Path(f"/proc/{maker}").exists():
            subprocess.run(["ip", "link", "delete", bridge], check=False)


class Machine:
    """A booted machine. Commands run as its root, beside its services."""

    def __init__(self, name: str, address: str, shell: subprocess.Popen[bytes], console: Path) -> None:
        self.name = name
        self.address = address
        self._shell = shell
        self._console = console

    def run(
        self, *command: str, check: bool = True, text: str | None = None, seconds: float = COMMAND_SECONDS
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to its end; its output is captured, and told if it fails. ``text`` is its standard input."""
        done = subprocess.run(
            [*self._enter(), *command],
            env={**_ENVIRONMENT, "HOME": "/root"},
            input="" if text is None else text,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
        if check and done.returncode != 0:
            raise AssertionError(
                f"{self.name}: {' '.join(command)} ended with {done.returncode}\n{done.stdout}{done.stderr}"
            )
        return done

    def tell(self, *command: str) -> str:
        """Run a command that must succeed and give what it prints, without the last newline."""
        return self.run(*command).stdout.rstrip("\n")

    def copy_in(self, source: Path, target: str, mode: str = "0644") -> None:
        """Copy a file of this machine into that one; its folder is made."""
        with source.open("rb") as content:
            self._receive(target, mode, content)

    def write(self, target: str, text: str, mode: str = "0644") -> None:
        """Write a file; its folder is made."""
        self.run("install", "-D", "-m", mode, "/dev/stdin", target, text=text)

    def _receive(self, target: str, mode: str, content: IO[bytes]) -> None:
        command = [*self._enter(), "install", "-D", "-m", mode, "/dev/stdin", target]
        subprocess.run(command, env=_ENVIRONMENT, stdin=content, check=True, timeout=COMMAND_SECONDS)

    def read(self, path: str) -> str:
        """Give a file's text."""
        return self.run("cat", path).stdout

    def until(self, is_so: Callable[[], object], what: str, seconds: float = BOOT_SECONDS) -> None:
        """Wait until something is so."""
        deadline = time.monotonic() + seconds
        while not is_so():
            assert time.monotonic() < deadline, f"{self.name}: not within {seconds:g} s: {what}"
            time.sleep(0.1)

    def journal(self, unit: str) -> str:
        """Give what a unit has logged, for the message of a failed assertion."""
        return self.run("journalctl", "--no-pager", "-o", "cat", "-u", unit, check=False).stdout

    def reboot(self) -> None:
        """Boot again, with the files as they are."""
        before = self._leader()
        self.run("systemctl", "reboot", check=False)
        self.until(lambda: not Path(f"/proc/{before}").exists(), "shut down")
        self.wait_for_boot()

    def wait_for_boot(self) -> None:
        """Return when everything that starts at boot has started; fails if a unit failed."""
        state = ""

        def is_up() -> bool:
            nonlocal state
            if self._shell.poll() is not None:
                raise AssertionError(
                    f"{self.name} did not boot:\n{self._console.read_text(errors='replace')[-3000:]}"
                )
            try:
                state = self.run("systemctl", "is-system-running", "--wait", check=False).stdout.strip()
            except LookupError:
                return False
            return state in ("running", "degraded")

        self.until(is_up, "booted")
        if state == "degraded":
            raise AssertionError(
                f"{self.name}: {self.tell('systemctl', '--failed', '--no-legend', '--plain')}"
            )

    def stop(self) -> None:
        """End it at once: nothing of it is needed any more."""
        with contextlib.suppress(LookupError, ProcessLookupError):
            os.kill(self._leader(), signal.SIGKILL)
        try:
            self._shell.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._shell.kill()
            self._shell.wait(timeout=10)

    def _enter(self) -> list[str]:
        leader = str(self._leader())
        return [
            "nsenter",
            "--target",
            leader,
            "--mount",
            "--uts",
            "--ipc",
            "--net",
            "--pid",
            "--root",
            "--wd",
        ]

    def _leader(self) -> int:
        """Find the machine's first process; ``LookupError`` while there is none, as between two boots."""
        for nspawn in _children(self._shell.pid):
            for child in _children(nspawn):
                with contextlib.suppress(OSError):
                    status = Path(f"/proc/{child}/status").read_text()
                    numbers = next(line for line in status.splitlines() if line.startswith("NSpid:")).split()[
                        1:
                    ]
                    if len(numbers) > 1 and numbers[-1] == "1":
                        return child
        raise LookupError(f"{self.name} has no first process")


def _children(process: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{process}/task/{process}/children").read_text().split()]
    except OSError:
        return []


@contextmanager
def booted(
    folder: Path,
    lan: Lan,
    *,
    name: str = "machine",
    files: Mapping[str, str] | None = None,
    layers: Sequence[Path] = (),
) -> Iterator[Machine]:
    """Boot a machine and end it afterwards; what it writes stays in memory, its console's log is in ``folder``.

    ``files`` are there before it boots, by absolute path; ``layers`` are folders that lie over the tree.
    """
    need_machines()
    try:
        tree = machine_tree()
    except TreeError as error:
        pytest.skip(f"no Debian tree: {error}")
    layer = folder / f"{name}-layer"
    address = lan.next_address()
    network = f"[Match]\nName=host0\n[Network]\nAddress={address}/24\nLinkLocalAddressing=no\n"
    given = {
        "/etc/hostname": f"{name}\n",
        "/etc/hosts": f"127.0.0.1 localhost\n{address} {name}\n",
        "/etc/systemd/network/10-host0.network": network,
        **(files or {}),
    }
    for path, text in given.items():
        file = layer / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    memory, merged = folder / f"{name}-memory", folder / f"{name}-root"
    memory.mkdir()
    merged.mkdir()
    console = folder / f"{name}-console.log"
    lower = ":".join(map(str, (*layers, tree)))
    groups = _control_groups(f"{lan.bridge}-{name}")
    # What is thrown away afterwards need not go to a disk.
    script = f"""\
set -e
for group in {" ".join(map(str, groups))}; do mkdir -p "$group"; echo $$ >"$group/cgroup.procs"; done
mount -t tmpfs -o mode=755 machine "{memory}"
cp -a "{layer}" "{memory}/upper"
mkdir "{memory}/work"
mount -t overlay -o "lowerdir={lower},upperdir={memory}/upper,workdir={memory}/work" machine "{merged}"
set +e
{_BOOT_AGAIN}
"""
    command = [
        "setpriv",
        "--pdeathsig",
        "KILL",
        "unshare",
        "--mount",
        "--propagation",
        "private",
        "sh",
        "-c",
        script,
        "sh",
        "setpriv",
        "--pdeathsig",
        "KILL",
        *_nspawn(merged, name, lan),
    ]
    with console.open("wb") as output:
        shell = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY": "1"},
        )
    machine = Machine(name, address, shell, console)
    try:
        machine.wait_for_boot()
        yield machine
    finally:
        machine.stop()
        for group in groups:
            _remove_group(group)
        with contextlib.suppress(OSError):
            Path(f"/run/systemd/nspawn/propagate/{lan.bridge}-{name}").rmdir()


def _control_groups(name: str) -> list[Path]:
    """Give the machine's own place in every hierarchy that systemd uses: two machines in one would meet there."""
    hierarchies = []
    for line in Path("/proc/mounts").read_text().splitlines():
        _, mount, kind, options, *_ = line.split()
        if kind == "cgroup2" or (kind == "cgroup" and "name=systemd" in options.split(",")):
            hierarchies.append(Path(mount) / name)
    return hierarchies


def _remove_group(group: Path) -> None:
    for folder, _, _ in os.walk(group, topdown=False):
        with contextlib.suppress(
            OSError
        ):  # whoever is still in it has yet to be reaped; the group is empty anyway
            Path(folder).rmdir()


def _nspawn(root: Path, name: str, lan: Lan) -> list[str]:
    return [
        "systemd-nspawn",
        "--quiet",
        "--boot",
        f"--directory={root}",
        f"--machine={lan.bridge}-{name}",
        f"--hostname={name}",
        f"--network-bridge={lan.bridge}",
        "--register=no",
        "--keep-unit",
        "--settings=no",
        "--console=read-only",
        "--link-journal=no",
        "--resolv-conf=off",
        "--timezone=off",
        # DeviceAllow= is a BPF program on a unified hierarchy.
        "--system-call-filter=bpf",
    ]
