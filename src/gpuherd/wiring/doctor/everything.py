"""``gpuherd doctor`` without a host: configuration, hub, lists, every node, and this machine itself."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gpuherd.agent.spec import resolve
from gpuherd.api.settings import listen_address
from gpuherd.model.errors import Failed
from gpuherd.wiring.config import Config
from gpuherd.wiring.doctor.agent_hub import AgentExamination, agent_state_dir
from gpuherd.wiring.doctor.arrivals import tell_arrivals
from gpuherd.wiring.doctor.files import is_there
from gpuherd.wiring.doctor.hub_api import ANYWHERE, HubApi, HubHealth, NoHub, is_locked
from gpuherd.wiring.doctor.network import connect
from gpuherd.wiring.doctor.own_gpus import examine_own_gpus
from gpuherd.wiring.doctor.starting import how_to_start
from gpuherd.wiring.doctor.state_folder import examine_state_folder
from gpuherd.wiring.doctor.steps import Journal, StepFailed, plural
from gpuherd.wiring.doctor.wording import age
from gpuherd.wiring.settings import LegacySettings

if TYPE_CHECKING:
    from gpuherd.wiring.lookup import FoundList

__all__ = ["Examination"]

MOST_REASONS = 10


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
        hub = self._config.hub
        if self._is_hub:
            examine_state_folder(hub.state_dir, self._journal)
            if hub.records_url is not None:
                await resolve("gpuherd.wiring.doctor.records_place:examine_records")(
                    hub.records_url, self._journal
                )
        await self._hub()
        self._names_shown()
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

    def _names_shown(self) -> None:
        hub = self._config.hub
        if hub.public == "names":
            networks = ", ".join(hub.public_networks)
            self._journal.ok("who sees names", f"everyone in {networks}, without a login (hub.public)")

    # -- the hub ---------------------------------------------------------------------------------------------------

    async def _hub(self) -> None:
        api = HubApi(self._config.hub)
        try:
            health = self._health = await api.health()
        except NoHub as error:
            self._no_hub(api, str(error))
            return
        reasons = list(health.reasons)
        reasons += [f"reports are not saved: {health.store.last_error}"] * (health.store.state == "failing")
        reasons += [f"{found.name}: {found.trouble}" for found in health.lists if found.trouble]
        reasons += [
            f"{name} in {found.name} is ignored: {why}"
            for found in health.lists
            for name, why in found.refused.items()
        ]
        fact = f"gpuherd {health.version} at {api.url}, up {age(health.uptime_seconds)}"
        if reasons:
            self._degraded(list(dict.fromkeys(reasons)), fact, f"{api.url}api/v1/health")
        else:
            self._journal.ok("hub", fact)
        await self._doors()

    def _degraded(self, reasons: list[str], fact: str, health_url: str) -> None:
        """Tell every reason, each as a thing of its own, unless there are very many."""
        left_out = len(reasons) - MOST_REASONS
        for number, reason in enumerate(reasons[:MOST_REASONS]):
            more = (
                f" (and {plural(left_out, 'more reason')}, see {health_url})"
                if number == MOST_REASONS - 1 and left_out > 0
                else ""
            )
            told = f"{fact}; degraded" if number == 0 else "degraded for another reason"
            self._journal.failed("hub", told, f"the hub is degraded: {reason}{more}")

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
                    [host], address.port, f"restart the hub, {key} may have been added since it started"
                )
            except StepFailed as failed:
                self._journal.failed("door", f"{key}: {failed.fact}", f"{key}: {failed.remedy}")
            else:
                self._journal.ok("door", f"{key} on {address}, for {', '.join(settings.networks)}")
        self._old_login(legacy)

    def _old_login(self, legacy: LegacySettings) -> None:
        # A node that is examined has none of the hub's packages.
        from gpuherd.api.legacy.old_login import exposure_of  # noqa: PLC0415

        login_file = None if legacy.gpustat is None else legacy.gpustat.login_file
        if login_file is not None and (exposure := exposure_of(self._config.folder / login_file)) is not None:
            self._journal.failed("old login", "readable by everyone", exposure)

    def _no_hub(self, api: HubApi, why: str) -> None:
        if is_locked(self._config.hub.state_dir / "hub.lock"):
            self._journal.failed(
                "hub",
                "no answer",
                f"a hub runs with {self._config.hub.state_dir} but does not respond at {api.url} ({why}): "
                "it hangs, or was started with a --listen other than hub.listen",
            )
        elif self._is_hub:
            reason = f"no hub responds at {api.url} ({why})"
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
