"""Following a page of the documentation: its commands are run in their order, as a reader would type them.

A ``sh`` block is one script. Of a ``console`` block the lines after a prompt (``$``, ``#``, ``hub$``, ``node#``) are
commands, everything else is what they print. A block titled *leave it running* goes on beside the rest until the walk
is over. What a page says for an example (addresses, ports, names) can be replaced by what is there in the test.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

__all__ = ["LEAVE_RUNNING", "Step", "Walk", "steps_of"]

LEAVE_RUNNING = "leave it running"
COMMAND_SECONDS = 120.0
STOP_SECONDS = 15.0
_BLOCK = re.compile(r"^```(sh|console)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PROMPT = re.compile(r"^(\w*)[$#]\s+(.*)$")
_TITLE = re.compile(r'title="([^"]*)"')


@dataclass(frozen=True)
class Step:
    """What is typed at one place of a page."""

    commands: str
    line: int
    """Where it stands in the page."""
    title: str = ""
    where: str = ""
    """The word before the prompt: ``hub`` of ``hub$``."""
    printed: str = ""
    """What the page says that a console's command prints."""
    following: str = ""
    """The prose up to the next block."""
    is_script: bool = True
    """A ``sh`` block, not a line of a console."""


def steps_of(page: Path) -> list[Step]:
    """Read a page."""
    text = page.read_text(encoding="utf-8")
    found: list[Step] = []
    blocks = [*_BLOCK.finditer(text)]
    for number, block in enumerate(blocks):
        kind, label, content = block.groups()
        following = text[block.end() : blocks[number + 1].start() if number + 1 < len(blocks) else None]
        line = text.count("\n", 0, block.start()) + 2
        title = _TITLE.search(label)
        if kind == "sh":
            found.append(Step(content, line, title[1] if title else "", following=following))
        else:
            found += _typed(content, line, title[1] if title else "")
    return found


def _typed(content: str, line: int, title: str) -> Iterator[Step]:
    lines = content.splitlines()
    starts = [number for number, each in enumerate(lines) if _PROMPT.match(each)]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        prompt = _PROMPT.match(lines[start])
        assert prompt is not None
        printed = "\n".join(lines[start + 1 : end])
        yield Step(
            prompt[2], line + start, title, prompt[1], f"{printed}\n" if printed else "", is_script=False
        )


class Walk:
    """One reader at one place: a folder, an environment, and what the page's examples stand for there."""

    def __init__(self, folder: Path, stack: ExitStack, *, prefix: Sequence[str] = ()) -> None:
        """``prefix`` goes before every command, such as that of a network namespace."""
        self.folder = folder
        self.stack = stack
        self.replaced: dict[str, str] = {}
        self.environment = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HOME": str(folder),
            "NO_PROXY": "127.0.0.1",
        }
        self.prefix = tuple(prefix)

    @contextmanager
    def apart(self) -> Iterator[Walk]:
        """Walk some steps of the same way; what they leave running is stopped with the last of them."""
        with ExitStack() as stack:
            part = Walk(self.folder, stack, prefix=self.prefix)
            part.replaced, part.environment = self.replaced, self.environment
            yield part

    def translate(self, commands: str) -> str:
        """Say for this place what the page says for its example; longer words first, as they may hold others."""
        for written in sorted(self.replaced, key=len, reverse=True):
            commands = commands.replace(written, self.replaced[written])
        return commands

    def follow(self, steps: Sequence[Step], *, is_up: Callable[[], bool]) -> None:
        """Do every step; after one that is left running wait until ``is_up``."""
        assert steps, "a page without commands"
        for step in steps:
            if step.title == LEAVE_RUNNING:
                self.leave_running(step)
                self.wait_until(is_up)
            else:
                self.run(step)

    def run(self, step: Step, *, typed: str = "y\n", may_end_with: Sequence[int] = (0,)) -> str:
        """Run a step to its end; gives what it printed. ``typed`` is what a person answers, if asked."""
        commands = self.translate(step.commands)
        done = subprocess.run(
            [*self.prefix, "bash", "-euo", "pipefail", "-c", commands],
            cwd=self.folder,
            env=self.environment,
            input=typed,
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
            check=False,
        )
        told = f"line {step.line}: {commands}\n{done.stdout}\n{done.stderr}\n{self._logs()}"
        assert done.returncode in may_end_with, f"ended with {done.returncode}; {told}"
        return done.stdout + done.stderr

    def leave_running(self, step: Step) -> subprocess.Popen[bytes]:
        """Start a step that does not end by itself; it is stopped at the end of the walk."""
        return self.stack.enter_context(self._running(self.translate(step.commands)))

    def wait_until(self, is_so: Callable[[], bool]) -> None:
        """Wait for what a step that is left running brings about."""
        deadline = time.monotonic() + COMMAND_SECONDS
        while not is_so():
            assert time.monotonic() < deadline, self._logs()
            time.sleep(0.05)

    def _logs(self) -> str:
        logs = sorted(self.folder.glob("left-running-*.log"))
        return "\n".join(f"{log.name}: {log.read_text(errors='replace')[-4000:]}" for log in logs)

    @contextmanager
    def _running(self, commands: str) -> Iterator[subprocess.Popen[bytes]]:
        number = len([*self.folder.glob("left-running-*.log")]) + 1
        with (self.folder / f"left-running-{number}.log").open("wb") as log:
            process = subprocess.Popen(
                [*self.prefix, "bash", "-c", f"exec {commands}"],
                cwd=self.folder,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(STOP_SECONDS)
