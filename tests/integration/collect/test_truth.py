"""The truth test: on every common field we say what gpustat and nvitop say, or a listed difference, with its reason.

Played: every recording of a real card and every ready scenario, time standing still, with one real process on the
first GPU. A difference that is not listed fails the test, and so does a listed one that is gone.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec
import pytest
from sim.build import SCENARIOS

from gpuherd.collect.scenario import Scenario, SimulatedProcess, load_scenario
from gpuherd.collect.smi_xml_scenario import scenario_from_smi_xml
from gpuherd.model.reports import Report

from .conftest import REPOSITORY, Bench, library_or_skip
from .peers import View, gpustat_view, nvitop_view, our_gpustat_view, our_nvitop_view

FIXTURES = Path(os.environ.get("GPUHERD_FIXTURES", REPOSITORY.parent / "shared" / "fixtures"))
RECORDINGS = {path.stem: path for path in sorted(FIXTURES.rglob("*.xml"))}
T = 30.0
"""Scenario second at which time stands still: after every fault has begun."""

NO_UUID = "a GPU that never answered has no UUID; we give it a name by its place, so that it can be listed"
NO_NAME = "they put the error into the name; we keep it apart, as a problem of the device"
IDLE_SHARE = "nvitop shows no share beside unknown memory; the driver leaves out idle processes, so we say 0"
SLICE_SHARE = "the driver tells no share on slices; nvitop shows 0, we say unknown"
UNIFIED = "gpustat does not know unified memory; we show the host's memory, labelled so"
NOT_UNIFIED = "nvitop shows the host's memory for a card that does not tell its own; we say unknown"
MOVING = "the host's memory is not part of the scenario and moves between the two readings"

DIFFERENCES: dict[tuple[str, str], dict[str, str]] = {
    ("mixed", "nvitop"): {"processes": IDLE_SHARE},
    ("mig", "nvitop"): {"processes": SLICE_SHARE},
    ("nothing_supported", "nvitop"): {
        "processes": IDLE_SHARE,
        "memory_total": NOT_UNIFIED,
        "memory_used": NOT_UNIFIED,
    },
    ("unified_memory", "gpustat"): {"memory.used": UNIFIED, "memory.total": UNIFIED},
    ("unified_memory", "nvitop"): {"memory_used": MOVING},
    ("xid", "gpustat"): {"name": NO_NAME},
    ("xid", "nvitop"): {"name": NO_NAME, "uuid": NO_UUID},
    ("lost_gpu", "gpustat"): {"name": NO_NAME},
    ("lost_gpu", "nvitop"): {"name": NO_NAME, "uuid": NO_UUID},
    ("unknown_error", "gpustat"): {"name": NO_NAME},
    ("unknown_error", "nvitop"): {"name": NO_NAME, "uuid": NO_UUID},
}
"""(case, tool) → field → why we differ. Everything not listed is equal."""

COMPARED = ["healthy", "mixed", "mig", "nothing_supported", "unified_memory", "old_driver", "slow", "xid", "lost_gpu",
            "unknown_error"]  # fmt: skip
HANG_SECONDS = 5.0
"""How long they are waited for where they fail: some hang for ever."""
THEY_FAIL: dict[str, tuple[frozenset[int], frozenset[int]]] = {
    "reset_required": (frozenset(), frozenset({0, 2, 3})),
    "crash": (frozenset({0}), frozenset({1, 2, 3})),
    "hung_gpu": (frozenset({1}), frozenset({0, 2, 3})),
}
"""Cases that crash or hang both tools → (GPUs that our agent stops asking after it happened once, GPUs we deliver)."""
NOBODY_READS = {
    "mismatch": "driver_mismatch",
    "driver_not_loaded": "no_driver",
    "no_permission": "no_permission",
}
"""Cases in which the driver cannot be opened → the problem we report beside the host."""
ELSEWHERE = {
    "hung_driver": "every call hangs: the agent replaces the probe, tests/integration/agent",
    "sleeping": "the tools wake the GPU; that we do not is shown in test_nvml.py",
}


def staged(scenario: Scenario) -> Scenario:
    """Stop the time and put a real process on the first GPU that can have one."""
    gpus = list(scenario.gpus)
    own = SimulatedProcess(pid=os.getpid(), memory_used_bytes=77 * 2**20, sm_percent=7)
    place = next((at for at, gpu in enumerate(gpus) if not gpu.mig_mode), None)
    if place is not None:
        gpus[place] = msgspec.structs.replace(gpus[place], processes=(*gpus[place].processes, own))
    return msgspec.structs.replace(scenario, gpus=tuple(gpus), frozen_time=T)


def differing(theirs: View, ours: View) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for uuid in theirs.keys() | ours.keys():
        if uuid not in theirs or uuid not in ours:
            found["device"] = (uuid, uuid in theirs, uuid in ours)
            continue
        for field, value in theirs[uuid].items():
            if value != ours[uuid][field]:
                found[field] = (uuid, value, ours[uuid][field])
    return found


def compare(bench: Bench, case: str) -> None:
    report = bench.reader().ask("report")
    assert msgspec.convert(report, Report).mismatch() is None, "returned an invalid report"
    for tool, theirs, ours in (
        ("gpustat", gpustat_view(bench), our_gpustat_view(report)),
        ("nvitop", nvitop_view(bench), our_nvitop_view(report)),
    ):
        assert not isinstance(theirs, str), f"{tool} {theirs}"
        assert theirs, "nothing to compare"
        found = differing(theirs, ours)
        listed = DIFFERENCES.get((case, tool), {})
        assert found.keys() <= listed.keys(), f"{tool}: {found}"
        expected = {field for field, reason in listed.items() if reason != MOVING}
        assert expected <= found.keys(), f"no longer different from {tool}: {expected - found.keys()}"


@pytest.mark.parametrize("name", COMPARED)
def test_we_say_what_they_say(bench: Bench, name: str) -> None:
    library = library_or_skip(old_driver=name == "old_driver")
    bench.play(staged(load_scenario(SCENARIOS / f"{name}.json")), library=library)
    compare(bench, name)


@pytest.mark.skipif(
    not RECORDINGS, reason="no recordings of real cards: set GPUHERD_FIXTURES to their folder"
)
@pytest.mark.parametrize("name", RECORDINGS)
def test_we_say_what_they_say_of_recorded_cards(bench: Bench, name: str) -> None:
    bench.play(staged(scenario_from_smi_xml(RECORDINGS[name].read_bytes(), name)))
    compare(bench, name)


@pytest.mark.parametrize("name", THEY_FAIL)
def test_we_deliver_the_healthy_gpus_where_they_fail(bench: Bench, name: str) -> None:
    scenario = staged(load_scenario(SCENARIOS / f"{name}.json"))
    bench.play(scenario)
    assert isinstance(gpustat_view(bench, HANG_SECONDS), str), (
        "gpustat survives this by now: compare with it instead"
    )
    assert isinstance(nvitop_view(bench, HANG_SECONDS), str), (
        "nvitop survives this by now: compare with it instead"
    )
    skipped, delivered = THEY_FAIL[name]
    reader = bench.reader()
    if skipped:
        reader.ask(f"skip {' '.join(map(str, skipped))}")
    report = reader.ask("report")
    healthy = our_nvitop_view(report)
    bench.play(msgspec.structs.replace(scenario, faults=()))
    truth = nvitop_view(bench)
    assert not isinstance(truth, str)
    for index in delivered:
        uuid = scenario.gpus[index].uuid
        assert healthy[uuid] == truth[uuid]


@pytest.mark.parametrize("name", NOBODY_READS)
def test_the_host_is_reported_where_no_gpu_can_be_read(bench: Bench, name: str) -> None:
    bench.play(name)
    assert isinstance(gpustat_view(bench, HANG_SECONDS), str)
    report = bench.reader().ask("report")
    assert [problem["code"] for problem in report["sample"]["problems"]] == [NOBODY_READS[name]]
    assert report["sample"]["host"]["memory_used_bytes"]


def test_every_ready_scenario_is_here() -> None:
    here = [*COMPARED, *THEY_FAIL, *NOBODY_READS, *ELSEWHERE]
    assert sorted(here) == sorted(path.stem for path in SCENARIOS.glob("*.json"))
