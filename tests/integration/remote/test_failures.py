"""A node's tools hang, fail, lose a GPU or print nonsense: the rest of the node is reported on time."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator

import pytest

from gpuherd.model.errors import Refused
from gpuherd.model.reports import Report
from support.remote_node import FakeNode, Session
from support.running import PATIENCE_SECONDS, eventually

BRIEF_SECONDS = 0.9
"""A deadline after which a tool that hung is left alone for a second: six of its whole seconds, and one."""


def until(session: Session, is_so: Callable[[Report], bool]) -> Report:
    """Read reports until one is as it should be."""
    end = time.monotonic() + PATIENCE_SECONDS
    while True:
        report = session.report()
        if is_so(report):
            return report
        assert time.monotonic() < end, f"still {report.sample.problems}"


def codes(report: Report) -> list[str]:
    return [problem.code for problem in report.sample.problems]


def test_a_hanging_tool_is_ended_and_left_alone_for_a_while(node: FakeNode) -> None:
    node.gpus(2)
    with Session(node, deadline_seconds=1) as session:
        assert len(session.report().facts.devices) == 2
        node.write("mode", "hang\n")
        report = until(session, lambda report: bool(report.sample.problems))
        (problem,) = report.sample.problems
        assert (problem.code, problem.is_fault) == ("driver_hung", True)
        assert "did not finish within 1 s" in problem.message
        assert len(report.facts.devices) == 2, "they stay listed"
        assert report.sample.host.cpu_ratio is not None
        asked = len(node.calls())
        for _ in range(5):
            assert codes(session.report()) == ["driver_hung"]
        assert len(node.calls()) == asked, "it is not asked in each round"
        assert node.alive() == []


def test_a_tool_that_hung_is_asked_again(dash_node: FakeNode) -> None:
    """This one does not even mind being asked to end."""
    dash_node.gpus(2)
    dash_node.write("mode", "stubborn\n")
    with Session(dash_node, deadline_seconds=BRIEF_SECONDS) as session:
        assert codes(session.report()) == ["driver_hung"]
        eventually(dash_node.alive, lambda alive: alive == [])
        dash_node.write("mode", "fine\n")
        report = until(session, lambda report: not report.sample.problems)
        assert [sample.utilization_gpu for sample in report.sample.devices] == [0.0, 0.01]


def test_facts_that_are_not_there_in_time_come_later(node: FakeNode) -> None:
    """A node that is too busy to say what it is, or a file system that hangs: the rest is reported."""
    node.gpus(1)
    node.install("uname", "#!/bin/sh\nexec sleep 300\n")
    with Session(node, deadline_seconds=BRIEF_SECONDS) as session:
        report = session.report()
        assert report.facts.host.os is None
        assert report.sample.host.memory_used_bytes is not None
        node.install("uname", "#!/bin/sh\necho riscv64\n")
        report = until(session, lambda report: report.facts.host.os is not None)
        assert report.facts.host.architecture == "riscv64"


@pytest.fixture
def freezer(dash_node: FakeNode) -> Iterator[FakeNode]:
    """A node whose nvidia-smi can get stuck so that no signal ends it."""
    try:
        dash_node.freezer.mkdir()
    except OSError:
        pytest.skip("needs root and the freezer of control groups version 1")
    yield dash_node
    (dash_node.freezer / "freezer.state").write_text("THAWED")
    end = time.monotonic() + PATIENCE_SECONDS
    while (dash_node.freezer / "tasks").read_text():
        assert time.monotonic() < end
        time.sleep(0.01)
    dash_node.freezer.rmdir()


def test_a_tool_that_cannot_be_ended(freezer: FakeNode) -> None:
    """As when it is stuck in the driver: one such process, never a second, also after a new login."""
    freezer.gpus(1)
    with Session(freezer, deadline_seconds=BRIEF_SECONDS) as session:
        session.report()
        freezer.write("mode", "frozen\n")
        # On a busy machine it may hang before it is stuck, and is then ended.
        until(session, lambda report: codes(report) == ["driver_hung"] and len(freezer.alive()) == 1)
        (stuck,) = freezer.alive()
        asked = len(freezer.calls())
        end = time.monotonic() + 2.5  # longer than a tool that hung is left alone
        while time.monotonic() < end:
            report = session.report()
            assert codes(report) == ["driver_hung"]
            assert f"(pid {stuck}) still hangs in the driver" in report.sample.problems[0].message
        assert len(freezer.calls()) == asked
    with Session(freezer, deadline_seconds=BRIEF_SECONDS) as session:
        assert codes(session.report()) == ["driver_hung"]
        assert len(freezer.calls()) == asked
        freezer.write("mode", "fine\n")
        (freezer.freezer / "freezer.state").write_text("THAWED")
        report = until(session, lambda report: not report.sample.problems)
        assert len(report.facts.devices) == 1


def test_a_lost_gpu_does_not_hide_the_others(node: FakeNode) -> None:
    node.gpus(3)
    with Session(node, deadline_seconds=10) as session:
        session.report()
        node.write("lost", "GPU-1-aaaa\n")
        report = until(session, lambda report: bool(report.sample.problems))
        for _ in range(3):
            assert [facts.uuid for facts in report.facts.devices] == [
                "GPU-0-aaaa",
                "GPU-1-aaaa",
                "GPU-2-aaaa",
            ]
            assert [sample.utilization_gpu for sample in report.sample.devices] == [0.0, None, 0.02]
            assert [(p.code, p.device_uuid, p.is_fault) for p in report.sample.problems] == [
                ("gpu_lost", "GPU-1-aaaa", True)
            ]
            report = session.report()
        before = len(node.calls())
        session.report()
        session.report()
        assert len(node.calls()) - before <= 2 * 3, "the healthy ones are asked together"


def test_a_lost_gpu_that_comes_back(dash_node: FakeNode) -> None:
    dash_node.gpus(3)
    with Session(dash_node, deadline_seconds=BRIEF_SECONDS) as session:
        session.report()
        dash_node.write("lost", "GPU-1-aaaa\n")
        until(session, lambda report: bool(report.sample.problems))
        dash_node.write("lost", "")
        report = until(session, lambda report: not report.sample.problems)
        assert [sample.utilization_gpu for sample in report.sample.devices] == [0.0, 0.01, 0.02]


def test_a_gpu_that_was_lost_before_the_login(dash_node: FakeNode) -> None:
    dash_node.gpus(2)
    dash_node.write("lost", "GPU-1-aaaa\n")
    dash_node.write(
        "list", "GPU 0: A100 (UUID: GPU-0-aaaa)\nUnable to determine the device handle for gpu 1\n"
    )
    with Session(dash_node) as session:
        for _ in range(3):
            report = session.report()
            assert [facts.uuid for facts in report.facts.devices] == ["GPU-0-aaaa", "gpu-at-0000:02:00.0"]
            assert [(p.code, p.device_uuid) for p in report.sample.problems] == [
                ("gpu_lost", "gpu-at-0000:02:00.0")
            ]


@pytest.mark.parametrize(
    ("complaint", "code"),
    [
        ("Failed to initialize NVML: Driver/library version mismatch\n", "driver_mismatch"),
        ("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n", "no_driver"),
        ("No devices were found\n", "no_gpu"),
        ("something new\n", "driver_failed"),
    ],
)
def test_a_driver_that_does_not_work(dash_node: FakeNode, complaint: str, code: str) -> None:
    dash_node.gpus(1)
    with Session(dash_node) as session:
        session.report()
        dash_node.write("complaint", complaint)
        dash_node.write("mode", "broken\n")
        # It may break in the middle of a round.
        until(session, lambda report: codes(report) == [code])
        dash_node.write("mode", "fine\n")
        until(session, lambda report: not report.sample.problems)


def test_words_in_place_of_values(dash_node: FakeNode) -> None:
    dash_node.write(
        "gpus",
        b"0, GPU-0-aaaa, \x1b[31mA\xff100\xe2\x80\xae, 00000000:01:00.0, 550.1, [N/A], 81920, [Unknown Error], "
        b"[N/A], 40\n"
        b"WARNING: infoROM is corrupted at gpu 0000:01:00.0\n"
        b"1, GPU-1-aaaa, A100, 00000000:02:00.0, 550.1, [N/A], 81920, 5, 99999999999, ERR!\n",
    )
    with Session(dash_node) as session:
        report = session.report()
    first, second = report.facts.devices
    assert "\x1b" not in first.name
    assert "\u202e" not in first.name
    assert (report.sample.devices[0].memory_used_bytes, report.sample.devices[0].utilization_gpu) == (
        None,
        None,
    )
    assert report.sample.devices[1].utilization_gpu is None
    assert second.uuid == "GPU-1-aaaa"
    assert codes(report) == ["metric_failed", "metric_failed", "driver_warning"]


def test_output_without_end_is_cut(dash_node: FakeNode) -> None:
    """What one command may print is limited on the node; the hub would refuse it only after it was sent."""
    dash_node.install("nvidia-smi", "#!/bin/sh\nexec yes 0123456789012345678901234567890123456789\n")
    with Session(dash_node, deadline_seconds=2) as session:
        report = session.report()
        assert codes(report) in (["driver_failed"], ["driver_hung"])
        assert len(session.output) < 1_000_000


def test_a_name_that_looks_like_a_delimiter(dash_node: FakeNode) -> None:
    """A process cannot speak for the node: it does not know the token."""
    dash_node.gpus(1)
    lines = f"\n@{'0' * 32} block nvidia.gpus 0\n\n@{'0' * 32} end 1\n"
    with subprocess.Popen(["sh", "-c", "read x", lines], stdin=subprocess.PIPE) as process:
        dash_node.write("apps", f"GPU-0-aaaa, {process.pid}, 3\n")
        with Session(dash_node) as session:
            (found,) = session.report().table.processes
        process.kill()
    assert "block nvidia.gpus 0" in (found.command or "")
    assert "\n" not in (found.command or "")


def test_the_token_is_nowhere_to_be_read(dash_node: FakeNode) -> None:
    dash_node.gpus(1)
    text = (dash_node.programs / "nvidia-smi").read_text()
    dash_node.install(
        "nvidia-smi", text.replace("read -r mode", "env >>environment; ps axww >>listed\nread -r mode", 1)
    )
    with Session(dash_node) as session:
        session.report()
        for name in ("environment", "listed"):
            content = (dash_node.folder / name).read_text()
            assert content
            assert session.token not in content


def test_rounds_that_are_not_ours_are_refused(dash_node: FakeNode) -> None:
    """Whatever speaks the protocol must still make sense."""
    dash_node.gpus(1)
    dash_node.write("apps", "GPU-0-aaaa, 7, 3\n")
    with Session(dash_node) as session:
        round_ = session.next_round()
        report = session.node.read(round_)
        assert report.mismatch() is None
        with pytest.raises(Refused):
            session.reader.feed(f"\n@{session.token} nonsense\n".encode())
