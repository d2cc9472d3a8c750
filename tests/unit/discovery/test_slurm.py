"""What Slurm's commands print."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuherd.discovery.settings import SlurmSettings
from gpuherd.discovery.slurm import SlurmFinder
from gpuherd.discovery.slurm.answers import SlurmNode, parse_json, parse_text, to_targets
from gpuherd.discovery.slurm.gres import GpuResources, parse_gres
from gpuherd.model.errors import Failed, GpuherdError, Misconfigured
from support.complaints import complaint_of
from support.running import PATIENCE_SECONDS

LINE = (
    "NodeName=gpu01 Arch=x86_64 CoresPerSocket=1 Gres=gpu:a100:8(S:0-1) NodeAddr=10.0.0.1 NodeHostName=gpu01.x "
    "OS=Linux 5.10.0 #1 SMP State=IDLE+DRAIN Partitions=all,big Comment=Gres=gpu:1 NodeAddr=6.6.6.6 \n"
)


@pytest.mark.parametrize(
    ("text", "has_gpus", "count"),
    [
        ("gpu:a100:8(S:0-1)", True, 8),
        ("gpu:8", True, 8),
        ("gpu", True, 1),
        ("gpu:a100", True, 1),
        ("gpu:a100:2,gpu:v100:4", True, 6),
        ("gpu:a100:2(S:0,1),gpu:v100:4(S:1)", True, 6),
        ("gres/gpu:h100:4", True, 4),
        ("(null)", False, None),
        ("", False, None),
        ("nic:2,shard:8", False, None),
        ("craynetwork:4,gpu:1", True, 1),
        ("gpu:0", False, 0),
        ("gpu:a100_1g.5gb:7", True, None),
        ("gpu:999999", True, None),
    ],
)
def test_resources_as_slurm_writes_them(text: str, has_gpus: bool, count: int | None) -> None:
    assert parse_gres(text) == GpuResources(has_gpus, count)


@given(st.text())
def test_any_resources_give_an_answer(text: str) -> None:
    count = parse_gres(text).count
    assert count is None or 0 <= count <= 512


def test_text_gives_the_first_mention_of_each_field() -> None:
    assert parse_text(LINE.encode()) == (
        SlurmNode(
            name="gpu01",
            address="10.0.0.1",
            hostname="gpu01.x",
            gres="gpu:a100:8(S:0-1)",
            partitions=("all", "big"),
        ),
    )


def test_no_nodes_are_an_answer_and_other_text_is_not() -> None:
    assert parse_text(b"No nodes in the system\n") == ()
    assert parse_text(b"") == ()
    with pytest.raises(Failed, match="did not print nodes"):
        parse_text(b"Welcome to the cluster!\n")


@pytest.mark.parametrize("state", ["idle", ["IDLE", "DRAIN"]])
def test_json_of_older_and_newer_releases(state: object) -> None:
    node = {
        "name": "gpu01",
        "address": "10.0.0.1",
        "hostname": "gpu01.x",
        "gres": "gpu:8",
        "state": state,
        "cpu_load": {"set": True, "number": 3},
        "partitions": ["all"],
    }
    nodes = parse_json(msgspec.json.encode({"meta": {}, "errors": [], "nodes": [node, None]}))
    targets, complaints = to_targets(nodes, partition="all")
    assert [(target.name, target.address, target.expected_gpus) for target in targets] == [
        ("gpu01", "10.0.0.1", 8)
    ]
    assert complaints == ()


def test_an_empty_list_with_errors_is_no_answer() -> None:
    answer = {"errors": [{"error": "Unspecified error", "errno": -1}], "nodes": []}
    with pytest.raises(Failed, match="contains errors"):
        parse_json(msgspec.json.encode(answer))


def test_nodes_without_gpus_only_when_asked_for() -> None:
    nodes = (SlurmNode(name="cpu"), SlurmNode(name="gpu", gres="gpu:1"))
    assert [target.name for target in to_targets(nodes)[0]] == ["gpu"]
    assert [(target.name, target.expected_gpus) for target in to_targets(nodes, all_nodes=True)[0]] == [
        ("cpu", None),
        ("gpu", 1),
    ]


def test_an_unknown_partition_is_told_with_those_there_are() -> None:
    nodes = (SlurmNode(name="a", gres="gpu:1", partitions=("all", "big")),)
    with pytest.raises(Misconfigured, match='partition "bgi"; known: all, big'):
        to_targets(nodes, partition="bgi")


def test_a_node_that_cannot_be_reached_is_left_out() -> None:
    nodes = (
        SlurmNode(name="a\x1b", gres="gpu:1"),
        SlurmNode(name="b", address="-x", gres="gpu:1"),
        SlurmNode(name="c", gres="gpu:1"),
    )
    targets, complaints = to_targets(nodes)
    assert [target.name for target in targets] == ["c"]
    assert len(complaints) == 2
    assert "\x1b" not in "".join(complaints)


@given(st.binary() | st.text().map(lambda text: f"NodeName={text}".encode()))
def test_any_output_gives_nodes_or_a_clean_failure(output: bytes) -> None:
    for parse in (parse_json, parse_text):
        complaint = complaint_of(lambda: to_targets(parse(output)), GpuherdError)  # noqa: B023 - called at once
        assert complaint is None or complaint.startswith("slurm: ")


def _command(folder: Path, name: str, script: str) -> None:
    file = folder / name
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)


def _finder(folder: Path, **settings: object) -> SlurmFinder:
    return SlurmFinder(
        msgspec.convert(
            {"in": "slurm", "command_folder": str(folder), **settings}, SlurmSettings, dec_hook=_path
        ),
        base=folder,
    )


def _path(kind: type, value: object) -> object:
    return Path(str(value))


def test_a_command_that_hangs_is_ended_with_its_children(tmp_path: Path) -> None:
    _command(tmp_path, "scontrol", f"sleep 60 & echo $! > {tmp_path}/pid; wait")
    with pytest.raises(Failed, match="no response within 1 s; is the controller"):
        asyncio.run(_finder(tmp_path, deadline_seconds=1).find())
    child = int((tmp_path / "pid").read_text())
    deadline = time.monotonic() + PATIENCE_SECONDS
    while _is_running(child):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_slurm_without_json_is_asked_for_text_and_then_only_for_that(tmp_path: Path) -> None:
    log = tmp_path / "log"
    _command(
        tmp_path,
        "scontrol",
        f'echo "$*" >> {log}; case "$*" in *--json) exit 1;; esac; echo "NodeName=a Gres=gpu:2 NodeAddr=a"',
    )
    _command(tmp_path, "sinfo", f'echo "sinfo" >> {log}; echo "unrecognized option" >&2; exit 1')
    finder = _finder(tmp_path)

    async def run() -> None:
        for _ in range(2):
            assert [target.name for target in await finder.find()] == ["a"]

    asyncio.run(run())
    assert log.read_text().splitlines() == [
        "show nodes --json",
        "sinfo",
        "show node --oneliner",
        "show node --oneliner",
    ]


def test_a_failing_controller_is_told_in_its_own_words(tmp_path: Path) -> None:
    _command(tmp_path, "scontrol", "echo 'Unable to contact slurm controller' >&2; exit 1")
    _command(tmp_path, "sinfo", "exit 1")
    with pytest.raises(Failed, match='exited with status 1: "Unable to contact slurm controller"'):
        asyncio.run(_finder(tmp_path).find())


def test_a_machine_without_slurm_is_misconfigured(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match=r"there is no .*scontrol on this machine; install"):
        asyncio.run(_finder(tmp_path).find())


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # An orphan in a container without an init stays a zombie.
    return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
