"""Whether a listening agent may be dialled: it serves one hub, and a second one that proves itself takes over."""

from __future__ import annotations

import asyncio
from pathlib import Path

from gpuherd.wiring.doctor.hub_api import HubApi, HubHealth, HubNode, NoHub, is_locked
from gpuherd.wiring.doctor.hub_word import trouble_of

__all__ = ["PullLink"]

SETTLE_SECONDS = 10.0
"""How long a hub may take from its start to its first contact with a node."""


class PullLink:
    """Asks the running hub how it stands with a listening agent."""

    def __init__(self, api: HubApi, health: HubHealth | None, state_dir: Path) -> None:
        self._api = api
        self._health = health
        self._state_dir = state_dir

    async def look(self, node_id: str) -> HubNode | str | None:
        """Give the hub's word where that must do, a sentence if not even that can be had, none if we may dial."""
        if self._health is None:
            if not is_locked(self._state_dir / "hub.lock"):
                return None
            return (
                f"a hub runs with {self._state_dir} but does not respond at {self._api.url}, and "
                "connecting to the node would take over the hub's connection: set hub.listen to the "
                "address it listens on"
            )
        try:
            return await self._settled(node_id)
        except NoHub as error:
            return f"the hub at {self._api.url} stopped responding: {error}"

    async def _settled(self, node_id: str) -> HubNode | None:
        """Wait until the hub has made contact, or knows why not: in between it may be dialling."""
        due = asyncio.get_running_loop().time() + SETTLE_SECONDS
        while True:
            node = await self._api.node(node_id)
            if node is None:
                return None
            trouble = trouble_of(node)
            if trouble is not None and trouble.code != "replaced" and node.state != "live":
                return None
            if node.state == "live" or trouble is not None or asyncio.get_running_loop().time() > due:
                return node
            await asyncio.sleep(0.2)
