"""The units as systemd reads them: nothing it does not know, and how much they leave open."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from gpuherd.wiring.installing.plan import Part, unit_text

MOST_EXPOSURE = {"hub": 1.5, "agent": 2.0}


@pytest.fixture(params=["hub", "agent"])
def part(request: pytest.FixtureRequest) -> Part:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("no systemd-analyze: install systemd")
    chosen: Part = request.param
    return chosen


@pytest.fixture
def unit(part: Part, tmp_path: Path) -> Path:
    file = tmp_path / f"gpuherd-{part}.service"
    file.write_text(unit_text(part, "/usr/bin/env"))
    return file


def test_systemd_has_nothing_to_say_against_it(unit: Path) -> None:
    told = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(unit)], capture_output=True, text=True, check=False
    )
    # Unknown keys are only warned of: silence is what counts.
    assert (told.returncode, told.stdout, told.stderr) == (0, "", "")


def test_it_leaves_little_open(unit: Path, part: Part) -> None:
    told = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--no-pager", str(unit)],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    level = re.search(r"Overall exposure level for \S+: ([0-9.]+)", told)
    assert level is not None, told
    assert float(level[1]) <= MOST_EXPOSURE[part], told


def test_a_gap_is_measured(unit: Path) -> None:
    """The figure moves: a unit without a wall is told from one with it."""
    unit.write_text(re.sub(r"(?m)^(Protect|Restrict|System|Capab|Private).*\n", "", unit.read_text()))
    told = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--json=short", str(unit)],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert sum(row["set"] is False for row in json.loads(told)) > 30
