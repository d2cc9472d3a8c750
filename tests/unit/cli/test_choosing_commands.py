"""pick, wait and run as far as no hub is needed; and signals while they work."""

from __future__ import annotations

import os
import re
import shlex
import signal
import socket
import threading
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from gpuherd.cli.child import Child, NotStarted
from gpuherd.cli.choosing import Asked, as_text
from gpuherd.cli.group import group
from gpuherd.cli.interrupts import Interrupted, Interrupts
from gpuherd.client.choosing import Candidate
from gpuherd.client.herd_views import Gpu, GpuFacts, Herd, Node
from gpuherd.client.views import Timeline
from support.running import PATIENCE_SECONDS


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.delenv("GPUHERD_HUB", raising=False)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("pick", "-n", "0"), "'-n'"),
        (("pick", "--mem", "much"), "is not a size"),
        (("pick", "--type", "--"), "is not a GPU type"),
        (("pick", "--for", "friday"), "is not a duration"),
        (("pick", "--max-age", "old"), "is not a duration"),
        (("pick", "--node", "a", "--anywhere"), "only one of"),
        (("pick", "--here", "--anywhere"), "only one of"),
        (("pick", "--here", "--hub", "http://127.0.0.1:9"), "uses no hub"),
        (("wait", "--here", "--then-book", "4h"), "uses no hub"),
        (("wait", "--timeout", "soon"), "is not a duration"),
        (("run",), "Missing argument"),
        (("run", "--extend", "1h", "--", "true"), "--extend needs --book"),
        (("run", "--title", "x", "--", "true"), "--title needs --book"),
        (("wait", "--title", "x"), "--title needs --then-book"),
        (("free", "--mem", "much"), "is not a size"),
        (("free", "--type", ""), "is not a GPU type"),
        (("free", "--here", "--hub", "http://127.0.0.1:9"), "uses no hub"),
        (("status", "--here", "--token-file", "x"), "uses no hub"),
        (("book", "1", "--for", "1h", "--until", "18:00"), "use either"),
        (("run", "--timeout", "1h", "--", "true"), "--timeout needs --wait"),
        (("run", "--wait", "--timeout", "soon", "--", "true"), "is not a duration"),
        (("run", "--no-such-option", "true"), "No such option"),
    ],
)
def test_a_wrong_command_line_is_told_before_anyone_is_asked(arguments: tuple[str, ...], words: str) -> None:
    done = CliRunner().invoke(group, arguments)
    assert done.exit_code == 2, done.output
    assert words in done.output


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(28, "No space left on device", "/run/lock"), "gpuherd: /run/lock: No space left on device"),
        (OSError(24, "Too many open files"), "gpuherd: something went wrong: Too many open files"),
        (ModuleNotFoundError("numpy", name="numpy"), "needs the Python package numpy; install"),
    ],
)
def test_what_goes_wrong_before_the_start_is_no_code_of_the_command(
    error: Exception, words: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fail(_asked: Asked, **_how: object) -> None:
        raise error

    monkeypatch.setattr(Asked, "look", fail)
    monkeypatch.setenv("GPUHERD_LOCK_DIR", str(tmp_path / "locks"))
    done = CliRunner().invoke(group, ("run", "--here", "--", "true"))
    assert (done.exit_code, words in done.output) == (125, True), done.output


def test_commands_in_the_docs_can_be_typed() -> None:
    text = (Path(__file__).parents[3] / "docs/pick.md").read_text(encoding="utf-8")
    found = re.findall(r"gpuherd (pick|wait|run) (-[^)`>&|\n]*)", text.replace("\\\n", " "))
    assert len(found) >= 12
    for name, rest in found:
        words = shlex.split(rest.replace('"$seed"', "1"))
        parsed = group.get_command(click.Context(group), name)
        assert parsed is not None
        if name == "run" and words[-1] == "--":
            words.append("true")  # the beginning of a line in a Makefile
        parsed.make_context(name, words)


class SmallTalk:
    """A hub with one node, which remembers for which it was asked."""

    def __init__(self) -> None:
        self.asked: list[str | None] = []

    def herd(self, *, node: str | None = None) -> Herd:
        self.asked.append(node)
        return Herd(time=5.0, nodes=(Node(id="a", name="gpu07"),))

    def timeline(self, since: int, until: int, *, node: list[str] | None) -> Timeline:
        return Timeline(time=5.0)


@pytest.mark.parametrize(
    ("place", "name"), [({}, socket.gethostname()), ({"node": "gpu07"}, "gpu07"), ({"anywhere": True}, None)]
)
def test_the_whole_herd_is_asked_for_only_if_it_matters(place: dict[str, Any], name: str | None) -> None:
    wanted: dict[str, Any] = {"count": 1, "mem": None, "kind": None, "same_node": False, "duration": None}
    where: dict[str, Any] = {"node": None, "anywhere": False, "here": False, **place}
    asked = Asked(**wanted, **where, max_age="60s", hub_url="http://127.0.0.1:9", token_file=None)
    hub: Any = SmallTalk()
    asked.hub = hub
    asked.look()
    assert hub.asked == [name]


def candidate(node: str, node_id: str, uuid: str, index: int, vendor: str = "nvidia") -> Candidate:
    facts = GpuFacts(uuid=uuid, index=index, name="x", vendor=vendor)
    return Candidate(Node(id=node_id, name=node), Gpu(node_id=node_id, facts=facts))


def test_what_is_printed_is_for_shells() -> None:
    chosen = [candidate("gpu07", "a", "GPU-b", 1), candidate("gpu07", "a", "GPU-a", 0)]
    assert as_text(chosen, with_node=False) == "CUDA_VISIBLE_DEVICES=GPU-a,GPU-b"
    chosen.append(candidate("my $(box)", "box", "GPU-c", 0))
    assert as_text(chosen, with_node=True) == (
        "gpu07 CUDA_VISIBLE_DEVICES=GPU-a,GPU-b\nbox CUDA_VISIBLE_DEVICES=GPU-c"
    )
    amd = [candidate("gpu07", "a", "GPU-0011", 1, vendor="amd")]
    assert as_text(amd, with_node=False) == "ROCR_VISIBLE_DEVICES=GPU-0011"


def kill(number: int) -> None:
    os.kill(os.getpid(), number)


def test_the_first_signal_ends_what_goes_on_and_later_ones_let_tidy_up() -> None:
    with Interrupts() as interrupts:
        with pytest.raises(Interrupted) as told:
            kill(signal.SIGTERM)
        assert told.value.exit_code == 143
        kill(signal.SIGINT)
        assert interrupts.count == 2
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_what_is_held_together_is_done_before_a_signal_is_told() -> None:
    done = []

    def work(interrupts: Interrupts) -> None:
        with interrupts.held():
            kill(signal.SIGINT)
            kill(signal.SIGTERM)
            with interrupts.held():
                done.append("inner")
            done.append("outer")

    with Interrupts() as interrupts, pytest.raises(Interrupted) as told:
        work(interrupts)
    assert (done, told.value.exit_code) == (["inner", "outer"], 130)


def test_what_was_told_stays_so_until_the_process_has_ended() -> None:
    before = {number: signal.getsignal(number) for number in Interrupts.NUMBERS}
    try:
        with Interrupts() as interrupts:
            interrupts.ignore()
        for number in before:
            kill(number)
        assert interrupts.count == 0
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def test_signals_that_are_ignored_stay_so() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Interrupts():
            kill(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_command_gets_the_signals_as_they_were() -> None:
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, set())
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        # Mask, ignored and caught signals of a process in its own words; SIGPIPE is 0x1000, SIGHUP 0x1.
        child = Child(["grep", "-q", "^SigIgn:.*0001$", "/proc/self/status"], os.environ)
        assert child.wait() == 0
        child.forget_signals()
        child = Child(["grep", "-Eq", "^SigBlk:.0+$", "/proc/self/status"], os.environ)
        assert child.wait() == 0
        child.forget_signals()
    finally:
        signal.signal(signal.SIGHUP, before)
    assert signal.pthread_sigmask(signal.SIG_BLOCK, set()) == mask


def test_a_command_that_cannot_be_run_leaves_signals_as_they_were(tmp_path: Path) -> None:
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, set())
    for program, code in (("no-such-program-here", 127), (str(tmp_path), 126)):
        with pytest.raises(NotStarted) as told:
            Child([program], os.environ)
        assert told.value.exit_code == code
    assert signal.pthread_sigmask(signal.SIG_BLOCK, set()) == mask


def test_an_end_that_another_thread_was_told_of_is_noticed() -> None:
    """As with the threads of numerical libraries, which block no signals."""
    over, codes = threading.Event(), list[int]()
    other = threading.Thread(target=over.wait)
    other.start()
    child = Child(["sh", "-c", "exit 9"], os.environ)
    try:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        waiting = threading.Thread(target=lambda: codes.append(child.wait()), daemon=True)
        waiting.start()
        waiting.join(PATIENCE_SECONDS)
    finally:
        over.set()
        other.join()
        child.forget_signals()
    assert codes == [9]
