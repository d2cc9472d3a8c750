"""A real Slurm controller: its nodes with their GPUs, and the controller frozen."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import structs

from gpuherd.discovery.settings import SlurmSettings
from gpuherd.discovery.slurm import SlurmFinder
from gpuherd.discovery.slurm import finder as finder_module
from gpuherd.model.errors import Failed, Misconfigured
from support.slurm import Slurm, running_slurm, why_no_slurm

REASON = why_no_slurm()
pytestmark = pytest.mark.skipif(REASON is not None, reason=str(REASON))

NODES = """\
NodeName=gpu[01-02] NodeAddr=127.0.1.[1-2] CPUs=2 Gres=gpu:a100:8 State=UNKNOWN
NodeName=mixed NodeHostname=mixed.example.org NodeAddr=127.0.1.3 CPUs=2 Gres=gpu:a100:2,gpu:v100:4 State=DRAIN
NodeName=plain NodeAddr=127.0.1.4 CPUs=2 Gres=gpu:4 State=DOWN Reason="no Gres=gpu:99 here"
NodeName=cpu01 NodeAddr=127.0.1.5 CPUs=2 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES
PartitionName=big Nodes=gpu[01-02],cpu01
"""


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    with running_slurm(tmp_path_factory.mktemp("slurm"), NODES) as running:
        yield running


@pytest.fixture
def settings(slurm: Slurm) -> SlurmSettings:
    return SlurmSettings(config_file=slurm.config_file, deadline_seconds=8)


@pytest.mark.parametrize("question", range(3))
def test_nodes_are_found_with_their_gpus_however_slurm_is_asked(
    settings: SlurmSettings, question: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finder_module, "_QUESTIONS", finder_module._QUESTIONS[question:])
    found = asyncio.run(SlurmFinder(settings, base=Path()).find())
    assert sorted((target.name, target.address, target.expected_gpus) for target in found) == [
        ("gpu01", "127.0.1.1", 8),
        ("gpu02", "127.0.1.2", 8),
        ("mixed", "127.0.1.3", 6),
        ("plain", "127.0.1.4", 4),
    ]


def test_a_partition_and_nodes_without_gpus(settings: SlurmSettings) -> None:
    async def names(**changes: object) -> list[str]:
        finder = SlurmFinder(structs.replace(settings, **changes), base=Path())
        return sorted(target.name for target in await finder.find())

    assert asyncio.run(names(partition="big")) == ["gpu01", "gpu02"]
    assert asyncio.run(names(partition="big", all_nodes=True)) == ["cpu01", "gpu01", "gpu02"]
    with pytest.raises(Misconfigured, match='"huge"; known: all, big'):
        asyncio.run(names(partition="huge"))


def test_a_frozen_controller_fails_within_the_deadline_and_recovers(
    slurm: Slurm, settings: SlurmSettings
) -> None:
    finder = SlurmFinder(structs.replace(settings, deadline_seconds=1.0), base=Path())
    with slurm.frozen(), pytest.raises(Failed, match="no response within 1 s; is the controller"):
        asyncio.run(finder.find())
    again = SlurmFinder(settings, base=Path())
    assert len(asyncio.run(again.find())) == 4


def test_no_controller_at_all(tmp_path: Path, slurm: Slurm, settings: SlurmSettings) -> None:
    nobody = tmp_path / "slurm.conf"
    lines = slurm.config_file.read_text().splitlines()
    nobody.write_text(
        "\n".join("SlurmctldPort=1" if "SlurmctldPort" in line else line for line in lines)
        + "\nMessageTimeout=2\n"
    )
    finder = SlurmFinder(structs.replace(settings, config_file=nobody), base=Path())
    with pytest.raises(Failed, match="Unable to contact slurm controller"):
        asyncio.run(finder.find())
