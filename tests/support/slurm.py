"""A real Slurm controller with its munge, on loopback ports and in a folder of its own; its nodes exist on paper."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from support.running import PATIENCE_SECONDS, free_port, frozen

__all__ = ["Slurm", "running_slurm", "why_no_slurm"]


def why_no_slurm() -> str | None:
    """Say what is missing for a Slurm of our own; None if nothing is."""
    path = f"/usr/sbin:{os.environ.get('PATH', '')}"
    missing = [
        name for name in ("munged", "slurmctld", "scontrol", "sinfo") if not shutil.which(name, path=path)
    ]
    if missing:
        return f"{', '.join(missing)} not installed (make provision, as root)"
    return None if os.geteuid() == 0 else "the Slurm controller of the tests needs root"


class Slurm:
    """A running controller."""

    def __init__(self, config_file: Path, controller: subprocess.Popen[bytes]) -> None:
        self.config_file = config_file
        self._controller = controller

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Stop the controller in its tracks for a while."""
        with frozen(self._controller.pid):
            yield

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run one of Slurm's commands."""
        environment = {**os.environ, "SLURM_CONF": str(self.config_file)}
        return subprocess.run(
            arguments, env=environment, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
        )


@contextmanager
def running_slurm(folder: Path, nodes: str) -> Iterator[Slurm]:
    """Run munged and slurmctld with the given lines of slurm.conf about nodes and partitions."""
    with ExitStack() as ends:
        # munge insists that nobody else may write along the way to its socket, and sockets need short paths.
        private = Path("/run") / f"gpuherd-test-{secrets.token_hex(4)}"
        private.mkdir(mode=0o755)
        ends.callback(shutil.rmtree, private)
        munge_socket = ends.enter_context(_munge(private))
        config_file = folder / "slurm.conf"
        (folder / "state").mkdir()
        config_file.write_text(
            f"""\
ClusterName=test
SlurmctldHost={socket.gethostname().partition(".")[0]}(127.0.0.1)
SlurmctldPort={free_port()}
SlurmdPort={free_port()}
AuthType=auth/munge
AuthInfo=socket={munge_socket}
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmctldLogFile={folder}/slurmctld.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
MpiDefault=none
GresTypes=gpu
{nodes}
"""
        )
        controller = ends.enter_context(
            _process(["/usr/sbin/slurmctld", "-D", "-i", "-f", str(config_file)], folder / "slurmctld.out")
        )
        slurm = Slurm(config_file, controller)
        _until(
            lambda: slurm.run("scontrol", "ping").stdout.count(" is UP") == 1,
            controller,
            folder / "slurmctld.log",
        )
        yield slurm


@contextmanager
def _munge(folder: Path) -> Iterator[Path]:
    key = folder / "key"
    key.touch(mode=0o600)
    key.write_bytes(secrets.token_bytes(1024))
    place = folder / "socket"
    arguments = [f"--{name}-file={folder}/{name}" for name in ("key", "pid", "log", "seed")]
    with _process(
        ["/usr/sbin/munged", "--foreground", f"--socket={place}", "--num-threads=2", *arguments],
        folder / "out",
    ) as process:
        _until(place.exists, process, folder / "out")
        yield place


@contextmanager
def _process(arguments: list[str], output: Path) -> Iterator[subprocess.Popen[bytes]]:
    with output.open("wb") as opened:
        process = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=opened, stderr=opened)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(timeout=PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(timeout=PATIENCE_SECONDS)


def _until(is_ready: Callable[[], bool], process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not is_ready():
        said = log.read_text(errors="replace")[-2000:] if log.exists() else ""
        assert process.poll() is None, said
        assert time.monotonic() < deadline, said
        time.sleep(0.05)
