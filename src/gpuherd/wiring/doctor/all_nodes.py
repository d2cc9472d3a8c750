"""Every listed node, tried side by side; one line for each."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from gpuherd.auth.enrolment import node_id_for
from gpuherd.model.errors import Refused
from gpuherd.wiring.config import Config
from gpuherd.wiring.doctor.hub_api import HubApi, HubHealth, HubNode
from gpuherd.wiring.doctor.hub_word import HubWord
from gpuherd.wiring.doctor.linked import PullLink
from gpuherd.wiring.doctor.steps import Journal, Step
from gpuherd.wiring.doctor.summary import summed_up
from gpuherd.wiring.doctor.walk import Walk, way_of
from gpuherd.wiring.lookup import ListedNode

__all__ = ["try_all"]

AT_ONCE = 16
DEADLINE_SECONDS = 15.0


async def try_all(
    config: Config, nodes: Sequence[ListedNode], journal: Journal, health: HubHealth | None
) -> None:
    """Try each; lines are told as they are known and kept in the order of the lists."""
    gate = asyncio.Semaphore(AT_ONCE)
    api = HubApi(config.hub)

    async def try_one(node: ListedNode) -> Step:
        async with gate:
            return await _try(config, node, api, health)

    tasks = [asyncio.create_task(try_one(node)) for node in nodes]
    try:
        for task in tasks:
            journal.take(await task)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _try(config: Config, node: ListedNode, api: HubApi, health: HubHealth | None) -> Step:
    journal = Journal()
    name = node.target.name
    try:
        node_id = node_id_for(name)
        word = None
        if way_of(node.settings.reach) == "pull":
            word = await PullLink(api, health, config.hub.state_dir).look(node_id)
        if isinstance(word, HubNode) and health is not None:
            HubWord(api, health, word, journal).tell_now()
        elif isinstance(word, str):
            journal.failed("hub", "no answer", word)
        else:
            walk = Walk(
                config,
                node.target,
                node.settings.reach,
                journal,
                deadline_seconds=DEADLINE_SECONDS,
                is_thorough=False,
            )
            await walk.run()
    except Refused as refusal:
        journal.failed("listed", "not a node name", f"{name}: {refusal}")
    return summed_up(name, journal.steps)
