"""What ``gpuherd doctor`` does, from reading the configuration on."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from gpuherd.model.errors import Misconfigured, Refused
from gpuherd.wiring.checking import check_config
from gpuherd.wiring.config import Config, default_config_files, load
from gpuherd.wiring.doctor.everything import Examination
from gpuherd.wiring.doctor.steps import Journal

__all__ = ["examine"]


async def examine(
    host: str | None,
    journal: Journal,
    *,
    config_file: Path | None = None,
    state_dir: Path | None = None,
    hub_url: str | None = None,
) -> None:
    """Examine one node, or everything that this machine's configuration speaks of."""
    overrides: dict[str, dict[str, Any]] = {
        "hub": {"state_dir": None if state_dir is None else str(state_dir)},
        "agent": {"hub_url": hub_url},
    }
    try:
        config = load(config_file, overrides)
        check_config(config)
    except Misconfigured as error:
        journal.failed("configuration", "cannot be used", str(error))
        return
    if host is not None:
        await _examine_host(config, host, journal)
        return
    file = config_file or next((place for place in default_config_files() if place.is_file()), None)
    journal.ok("configuration", str(file) if file is not None else "no file; the defaults are fine")
    await Examination(config, journal, given_state_dir=state_dir).run()


async def _examine_host(config: Config, host: str, journal: Journal) -> None:
    # Imported here: on a node there is no need, and no package, to reach others.
    try:
        examination = import_module("gpuherd.wiring.doctor.one_host").HostExamination
    except ModuleNotFoundError as missing:
        journal.failed(
            "listed",
            "no hub here",
            f"the connection to {host} is checked from the hub, and this machine does not have the hub's "
            f"packages ({missing.name}): run this on the hub. To check this machine itself, run `gpuherd "
            "doctor` without a name",
        )
        return
    try:
        await examination(config, host, journal).run()
    except Refused as refusal:
        journal.failed("listed", "not a node name", str(refusal))
