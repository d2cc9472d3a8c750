"""What ``gpuherd doctor`` finds wrong with a hub of a test."""

from __future__ import annotations

from pathlib import Path

from gpuherd.api.hub import Hub
from gpuherd.wiring.doctor.examine import examine
from gpuherd.wiring.doctor.steps import Journal, broken

__all__ = ["doctors_words"]


async def doctors_words(hub: Hub, folder: Path) -> list[str]:
    """Examine the machine of a hub; ``folder`` is for the configuration."""
    config, settings = folder / "gpuherd.toml", hub.settings
    config.write_text(f'[hub]\nlisten = "{settings.listen}"\nstate_dir = "{settings.state_dir}"\n')
    journal = Journal()
    await examine(None, journal, config_file=config)
    return [step.remedy or step.fact for step in broken(journal.steps)]
