"""A node without an agent on this machine: the real script in a real shell, beside a made-up ``nvidia-smi``."""

from __future__ import annotations

import os
import secrets
import selectors
import shutil
import signal
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

from gpuherd.collect.processes import CommandLines
from gpuherd.collect.remote import RemoteNode, node_script
from gpuherd.model.reports import Report
from gpuherd.wire.blocks import COMMAND, BlockReader, Round, start_message
from support.running import PATIENCE_SECONDS

SHELLS = {"dash": ["dash"], "bash": ["bash"], "busybox": ["busybox"]}
"""Programs that can be ``sh``. Only shells that call themselves so by the name they are started with."""
BUSYBOX_TOOLS = (
    "timeout", "mktemp", "head", "cat", "rm", "mv", "tr", "sed", "grep", "date", "df", "uname", "sleep", "ls", "true",
    "readlink",
)  # fmt: skip

FIELDS = ("index", "uuid", "name", "pci.bus_id", "driver_version", "mig.mode.current", "memory.total", "memory.used",
          "utilization.gpu", "temperature.gpu")  # fmt: skip

# What it does lies in files beside it: "mode", and the text of each answer.
NVIDIA_SMI = r"""#!/bin/sh
cd "@HERE@" || exit 1
echo "$$ $*" >>calls
read -r mode <mode
case $mode in
hang) exec sleep 300 ;;
stubborn) trap '' TERM HUP; while :; do sleep 1; done ;;
frozen) echo $$ >"@FREEZER@/tasks"; echo FROZEN >"@FREEZER@/freezer.state"; sleep 1 ;;
broken) cat complaint; exit 9 ;;
esac
gone() { echo "Unable to determine the device handle for GPU0000:02:00.0: GPU is lost."; exit 15; }
case $1 in
--help-query-gpu) cat help ;;
--query-gpu=*)
    case " $* " in
    *" --id="*) wanted=${*##*--id=}
        for uuid in $(echo "$wanted" | tr , ' '); do
            ! grep -q "$uuid" lost || gone
            grep "$uuid" gpus
        done ;;
    *) [ ! -s lost ] || gone
        cat gpus ;;
    esac ;;
--query-compute-apps=*) cat apps ;;
-q) cat log ;;
-L) cat list ;;
esac
"""


class FakeNode:
    """A folder of programs for the script to find first, and sessions with it."""

    def __init__(self, folder: Path, shell: str = "dash") -> None:
        self.folder = folder
        self.programs = folder / "bin"
        self.programs.mkdir()
        self.freezer = Path("/sys/fs/cgroup/freezer") / f"gpuherd-test-{secrets.token_hex(4)}"
        (self.programs / "sh").symlink_to(which(SHELLS[shell][0]))
        if shell == "busybox":
            for tool in BUSYBOX_TOOLS:
                (self.programs / tool).symlink_to(which("busybox"))

    def install_nvidia_smi(self) -> None:
        text = NVIDIA_SMI.replace("@HERE@", str(self.folder)).replace("@FREEZER@", str(self.freezer))
        self.install("nvidia-smi", text)
        self.write("help", "List of fields\n" + "".join(f'"{field}"\nwhat it is\n\n' for field in FIELDS))
        self.write("mode", "fine\n")
        for name in ("gpus", "apps", "lost", "log", "list", "complaint"):
            self.write(name, "")

    def install(self, name: str, text: str) -> None:
        path = self.programs / name
        path.unlink(missing_ok=True)  # it may be a link to a program of this machine
        path.write_text(text)
        path.chmod(0o755)

    def write(self, name: str, text: str | bytes) -> None:
        """Change an answer, at once: the script may be reading the old one."""
        new = self.folder / f"{name}.new"
        new.write_bytes(text if isinstance(text, bytes) else text.encode())
        new.replace(self.folder / name)

    def gpus(self, count: int, memory_used: int = 100) -> None:
        """Have that many GPUs, ``GPU-0-aaaa`` and so on, at bus 1 and so on."""
        rows = (
            f"{n}, GPU-{n}-aaaa, NVIDIA A100, 00000000:{n + 1:02X}:00.0, 550.1, [N/A], 81920, {memory_used}, {n}, 40\n"
            for n in range(count)
        )
        self.write("gpus", "".join(rows))

    def calls(self) -> list[tuple[int, str]]:
        """Give pid and arguments of every nvidia-smi that was started."""
        path = self.folder / "calls"
        lines = path.read_text().splitlines() if path.exists() else []
        return [(int(line.split()[0]), line.partition(" ")[2]) for line in lines]

    def alive(self) -> list[int]:
        return [pid for pid, _ in self.calls() if is_running(pid)]


def which(program: str) -> str:
    found = shutil.which(program)
    assert found, f"there is no {program}"
    return found


def is_running(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


class Session:
    """A channel to the script, as SSH would give it: three pipes and no terminal."""

    def __init__(
        self,
        node: FakeNode,
        *,
        interval_seconds: float = 0.2,
        deadline_seconds: float = 5,
        command_lines: CommandLines = "full",
        command: list[str] | None = None,
    ) -> None:
        self.token = secrets.token_hex(16)
        self.reader = BlockReader(self.token)
        self.node = RemoteNode(command_lines=command_lines)
        self.output = b""
        self.rounds: list[Round] = []
        environment = {"PATH": f"{node.programs}:{os.environ['PATH']}", "HOME": "/", "TMPDIR": "/tmp"}
        self.process = subprocess.Popen(
            command or ["sh", "-c", COMMAND],
            executable=str(node.programs / "sh") if command is None else None,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            cwd="/",
            start_new_session=True,
        )
        assert self.process.stdin is not None
        self.process.stdin.write(
            start_message(
                self.token,
                interval_seconds=interval_seconds,
                deadline_seconds=deadline_seconds,
                command_lines=command_lines,
                script=node_script(),
            )
        )
        self.process.stdin.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def next_round(self) -> Round:
        """Wait for the next round."""
        until = time.monotonic() + PATIENCE_SECONDS
        stream = self.process.stdout
        assert stream is not None
        with selectors.DefaultSelector() as selector:
            selector.register(stream, selectors.EVENT_READ)
            while not self.rounds:
                assert selector.select(max(0.0, until - time.monotonic())), (
                    f"no round: {self.output[-2000:]!r}"
                )
                chunk = os.read(stream.fileno(), 65536)
                assert chunk, f"the script ended: {self.output[-2000:]!r} {self._complaint()!r}"
                self.output += chunk
                self.rounds += self.reader.feed(chunk)
        return self.rounds.pop(0)

    def report(self) -> Report:
        report = self.node.read(self.next_round())
        assert report.mismatch() is None
        return report

    def _complaint(self) -> bytes:
        return b"" if self.process.stderr is None else self.process.stderr.read()

    def close(self) -> int:
        """Close the channel and wait until the script has noticed."""
        for stream in (self.process.stdout, self.process.stdin, self.process.stderr):
            if stream is not None and not stream.closed:
                stream.close()
        try:
            return self.process.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            raise
