"""``gpuherd doctor`` without a host: configuration, hub, lists, every node, and this machine itself."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from gpuherd.agent.spec import resolve
from gpuherd.api.settings import listen_address
from gpuherd.model.errors import Failed
from gpuherd.wiring.config import Config
from gpuherd.wiring.doctor.agent_hub import AgentExamination, agent_state_dir
from gpuherd.wiring.doctor.arrivals import tell_arrivals
from gpuherd.wiring.doctor.files import is_there, may_be_looked_into, owner_of
from gpuherd.wiring.doctor.hub_api import ANYWHERE, HubApi, HubHealth, NoHub, is_locked
from gpuherd.wiring.doctor.network import connect
from gpuherd.wiring.doctor.own_gpus import examine_own_gpus
from gpuherd.wiring.doctor.starting import how_to_start
from gpuherd.wiring.doctor.steps import Journal, StepFailed, plural
from gpuherd.wiring.doctor.wording import age, size
from gpuherd.wiring.settings import LegacySettings

if TYPE_CHECKING:
    from gpuherd.wiring.lookup import FoundList

__all__ = ["Examination"]

LEAST_FREE_BYTES = 500_000_000


class Examination:
    """Examines all that the configuration of this machine speaks of."""

    def __init__(self, config: Config, journal: Journal, *, given_state_dir: Path | None = None) -> None:
        self._config = config
        self._journal = journal
        self._agent_dir = agent_state_dir(config.agent, given_state_dir)
        self._health: HubHealth | None = None

    @property
    def _is_hub(self) -> bool:
        """Whether a hub is meant to run here."""
        config = self._config
        asked_for = config.nodes or config.folders or config.legacy != LegacySettings()
        return bool(asked_for) or is_there(config.hub.state_dir / "hub.lock")

    @property
    def _is_node(self) -> bool:
        """Whether an agent is meant to run here."""
        agent = self._config.agent
        return bool(agent.hub_url or agent.listen)

    async def run(self) -> None:
        """Examine everything; nothing that is broken keeps the rest from being looked at."""
        if self._is_hub:
            self._state_folder()
        await self._hub()
        listed: frozenset[str] = frozenset()
        if self._config.nodes:
            listed = await self._lists()
        if self._health is not None:
            await tell_arrivals(HubApi(self._config.hub), self._health, self._journal, listed)
        if self._config.folders:
            await self._folders()
        await examine_own_gpus(self._config.agent, self._journal, is_node=self._is_node)
        if self._is_node:
            await AgentExamination(self._config.agent, self._agent_dir, self._journal).run()

    def _state_folder(self) -> None:
        folder, name = self._config.hub.state_dir, "state folder"
        if not is_there(folder) and may_be_looked_into(folder.parent):
            self._journal.skipped(name, f"{folder} is made when the hub starts first")
            return
        owner_id, owner = owner_of(folder) or (None, "someone else")
        if not os.access(folder, os.W_OK | os.X_OK):
            self._journal.failed(
                name,
                "not writable",
                f"this user may not write {folder}, which belongs to {owner}: run the hub and this as {owner}, or "
                "choose another hub.state_dir",
            )
            return
        free = shutil.disk_usage(folder).free
        whose = f" (of {owner})" if owner_id != os.geteuid() else ""
        if free < LEAST_FREE_BYTES:
            self._journal.failed(
                name,
                f"{size(free)} free",
                f"only {size(free)} are free for {folder}: make room, or what nodes send is not kept",
            )
        else:
            self._journal.ok(name, f"{folder}{whose}, {size(free)} free")

    # -- the hub ---------------------------------------------------------------------------------------------------

    async def _hub(self) -> None:
        api = HubApi(self._config.hub)
        try:
            health = self._health = await api.health()
        except NoHub as error:
            self._no_hub(api, str(error))
            return
        reasons = list(health.reasons)
        reasons += [f"what nodes send is not kept: {health.store.last_error}"] * (
            health.store.state == "failing"
        )
        reasons += [f"{found.name}: {found.trouble}" for found in health.lists if found.trouble]
        reasons += [
            f"{name} of {found.name} is left out: {why}"
            for found in health.lists
            for name, why in found.refused.items()
        ]
        fact = f"gpuherd {health.version} at {api.url}, up {age(health.uptime_seconds)}"
        if not reasons:
            self._journal.ok("hub", fact)
            await self._doors()
            return
        more = (
            f" (and {plural(len(reasons) - 1, 'more reason')}, see {api.url}api/v1/health)"
            if len(reasons) > 1
            else ""
        )
        self._journal.failed("hub", f"{fact}; degraded", f"the hub is degraded: {reasons[0]}{more}")

        await self._doors()

    async def _doors(self) -> None:
        """See that the doors for older tools are open."""
        legacy = self._config.legacy
        for name, settings in (("gpustat", legacy.gpustat), ("get_status", legacy.get_status)):
            if settings is None:
                continue
            key = f"legacy.{name}"
            address = listen_address(settings.listen, f"{key}.listen")
            host = ANYWHERE.get(address.host, address.host)
            try:
                await connect(
                    [host], address.port, f"restart the hub, {key} was perhaps added since it started"
                )
            except StepFailed as failed:
                self._journal.failed("door", f"{key}: {failed.fact}", f"{key}: {failed.remedy}")
            else:
                self._journal.ok("door", f"{key} on {address}, for {', '.join(settings.networks)}")

    def _no_hub(self, api: HubApi, why: str) -> None:
        if is_locked(self._config.hub.state_dir / "hub.lock"):
            self._journal.failed(
                "hub",
                "no answer",
                f"a hub runs with {self._config.hub.state_dir} but does not answer at {api.url} ({why}): it hangs, or "
                "was started with another --listen than hub.listen says",
            )
        elif self._is_hub:
            reason = f"no hub answers at {api.url} ({why})"
            self._journal.failed(
                "hub", "not running", how_to_start("the hub", reason, "gpuherd-hub", "gpuherd hub run")
            )
        else:
            self._journal.skipped("hub", "none on this machine")

    # -- nodes -----------------------------------------------------------------------------------------------------

    async def _lists(self) -> frozenset[str]:
        """Look at every list and try every node; gives the names of the nodes."""
        # Imported here: a node has neither lists nor the packages that it takes to reach others.
        ask_lists = resolve("gpuherd.wiring.doctor.lists:ask_lists")
        try:
            lists: list[FoundList] = await ask_lists(self._config)
        except Failed as error:
            self._journal.failed("list", "no answer", str(error))
            return frozenset()
        for found in lists:
            if found.trouble is not None:
                self._journal.failed(
                    "list", f"{found.name}, by {found.way}", f"{found.name}: {found.trouble}"
                )
            else:
                self._journal.ok("list", f"{found.name}: {plural(len(found.nodes), 'node')} by {found.way}")
        nodes = [node for found in lists for node in found.nodes]
        await resolve("gpuherd.wiring.doctor.all_nodes:try_all")(
            self._config, nodes, self._journal, self._health
        )
        return frozenset(node.target.name for node in nodes)

    async def _folders(self) -> None:
        look_into = resolve("gpuherd.wiring.doctor.folders:look_into")
        for settings in self._config.folders:
            try:
                seen = await look_into(settings, self._config.folder)
            except Failed as error:
                self._journal.failed("folder", str(settings.path), str(error))
            else:
                self._journal.ok("folder", f"{seen.path}: files of {plural(len(seen.drops), 'node')}")
