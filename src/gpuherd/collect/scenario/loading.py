"""Scenario files: bytes to structs and back, with errors that name file and key."""

from __future__ import annotations

from pathlib import Path

import msgspec

from gpuherd.collect.scenario.cards import Scenario
from gpuherd.model.errors import Misconfigured

__all__ = ["dump_scenario", "load_scenario", "parse_scenario"]

MAX_SCENARIO_BYTES = 16 * 1024 * 1024


def parse_scenario(content: bytes, source: str) -> Scenario:
    """Decode a scenario; ``source`` is named in errors. Raises ``Misconfigured``."""
    if len(content) > MAX_SCENARIO_BYTES:
        raise Misconfigured(
            f"{source}: larger than {MAX_SCENARIO_BYTES >> 20} MiB; split the herd into files"
        )
    try:
        return msgspec.json.decode(content, type=Scenario)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Misconfigured(f"{source}: {error}; sim/README.md describes every key") from error


def load_scenario(path: Path) -> Scenario:
    """Read and decode a scenario file. Raises ``Misconfigured``."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise Misconfigured(f"{path}: cannot read the scenario: {error.strerror or error}") from error
    return parse_scenario(content, str(path))


def dump_scenario(scenario: Scenario) -> bytes:
    """Encode a scenario so that both readers take it back unchanged."""
    return msgspec.json.format(msgspec.json.encode(scenario), indent=2) + b"\n"
