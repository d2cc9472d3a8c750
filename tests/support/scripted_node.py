"""Fixtures around a scripted node: its script, its probe spec and a way to break it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gpuherd.agent.spec import CollectorSpec, ProbeSpec
from support.tiny_node import write_script


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a script for the scripted node; probes find its module by PYTHONPATH."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    file = tmp_path / "script.json"
    write_script(file)
    return file


@pytest.fixture
def spec(script: Path) -> ProbeSpec:
    """Name the scripted node and its collector."""
    options = {"script": str(script)}
    return ProbeSpec(
        node="support.tiny_node:TinyNode",
        node_options=options,
        collectors=(CollectorSpec(name="tiny", target="support.tiny_node:TinyCollector", options=options),),
    )


@pytest.fixture
def fault(script: Path) -> Callable[..., None]:
    """Change the script: ``fault(gpus=4, faults={"1": "hang"})``."""

    def change(**fields: object) -> None:
        write_script(script, **fields)

    return change
