"""``gpuherd doctor HOST``: find out how a node comes in, then walk that way."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence

from msgspec import structs

from gpuherd.auth.enrolment import node_id_for
from gpuherd.discovery.hosts import parse_host
from gpuherd.model.errors import Failed, Misconfigured
from gpuherd.sources.settings import SshSettings
from gpuherd.wiring.config import Config
from gpuherd.wiring.doctor.files import owner_of
from gpuherd.wiring.doctor.folders import FoundDrop, SeenFolder, judge_drop, look_into
from gpuherd.wiring.doctor.hub_api import HubApi, HubHealth, HubNode, NoHub, names_of
from gpuherd.wiring.doctor.hub_word import HubWord, trouble_of
from gpuherd.wiring.doctor.linked import PullLink
from gpuherd.wiring.doctor.lists import ask_lists, looked_in, resembling
from gpuherd.wiring.doctor.starting import how_to_start
from gpuherd.wiring.doctor.steps import Journal, is_well, plural
from gpuherd.wiring.doctor.walk import Walk, way_of
from gpuherd.wiring.doctor.wording import age
from gpuherd.wiring.lookup import FoundList, ListedNode, matching

__all__ = ["HostExamination"]

HUB_LOOKS_SECONDS = 30.0
"""How long a hub may take to reach a reachable node; longer than the default timeout of a login."""
HUB_ASKED_EVERY_SECONDS = 0.5


class HostExamination:
    """Looks for one node everywhere and examines it."""

    def __init__(self, config: Config, host: str, journal: Journal) -> None:
        self._config = config
        self._host = host
        self._journal = journal
        self._api = HubApi(config.hub)
        self._health: HubHealth | None = None
        self._no_hub = ""
        self._no_word = ""
        """Why the hub that runs does not tell its nodes."""
        self._folders: list[SeenFolder] = []

    async def run(self) -> None:
        """Examine it."""
        self._journal.start()
        try:
            self._health = await self._api.health()
        except NoHub as error:
            self._no_hub = str(error)
        try:
            lists = await ask_lists(self._config)
        except Failed as error:
            self._journal.failed("listed", "no answer", str(error))
            return
        node = matching(lists, self._host)
        if node is not None:
            await self._listed(node)
            return
        known = await self._known_to_hub()
        drop = await self._dropped()
        if known is not None:
            await self._arrived(known, drop)
        elif drop is not None:
            self._journal.ok("listed", "not in any list; its files are read from a folder")
            await judge_drop(self._journal, drop)
            self._tell_unknown(drop)
        else:
            await self._unlisted(lists)

    # -- listed nodes ----------------------------------------------------------------------------------------------

    async def _listed(self, node: ListedNode) -> None:
        way = way_of(node.settings.reach)
        where = node.target.place or node.place
        refusal = self._left_out(node)
        if refusal is None:
            self._journal.ok("listed", f"{where}, by {way}")
        else:
            self._journal.failed(
                "listed",
                f"{where}, but ignored",
                f"{node.target.name} of {node.place} is ignored by the hub: {refusal}",
            )
        node_id = node_id_for(node.target.name)
        if way == "pull":
            word = await PullLink(self._api, self._health, self._config.hub.state_dir).look(node_id)
            if isinstance(word, HubNode) and self._health is not None:
                self._journal.skipped("key", "the hub's connection is not disturbed")
                await HubWord(self._api, self._health, word, self._journal).tell()
                return
            if isinstance(word, str):
                self._journal.failed("hub", "no answer", word)
                return
        self._tell_user(way)
        await Walk(self._config, node.target, node.settings.reach, self._journal).run()
        await self._hubs_view(node_id, node.target.name)

    def _left_out(self, node: ListedNode) -> str | None:
        lists = () if self._health is None else self._health.lists
        return next(
            (found.refused[node.target.name] for found in lists if node.target.name in found.refused), None
        )

    def _tell_user(self, way: str) -> None:
        """Say so if the hub belongs to someone else: its keys and known hosts are not ours."""
        owner = owner_of(self._config.hub.state_dir)
        if owner is not None and owner[0] != os.geteuid() and way == "ssh":
            name = owner[1]
            self._journal.skipped(
                "user",
                f"the hub's folder belongs to {name}, whose SSH keys may differ from yours; better: sudo "
                f"-u {name} gpuherd doctor {self._host}",
            )

    async def _hubs_view(self, node_id: str, name: str) -> None:
        """Say how the running hub itself fares with the node."""
        if self._health is None:
            self._journal.skipped("hub", f"no hub responds at {self._api.url} ({self._no_hub})")
            return
        was_well = is_well(self._journal.steps)
        node = await (self._hub_when_it_has_looked(node_id) if was_well else self._ask_hub(node_id))
        if node is None:
            self._journal.failed(
                "hub",
                "does not know it",
                f"the running hub does not know {name}: it was started with another configuration or before {name} was "
                "listed; restart it",
            )
            return
        trouble = trouble_of(node)
        if node.state == "live" and trouble is None:
            self._journal.ok("hub", f"shows it live, last report {age(node.age_seconds or 0.0)} ago")
        elif was_well:
            said = trouble.message if trouble is not None else node.reason or node.state
            self._journal.failed(
                "hub",
                f"shows it {node.state}",
                f"{name} can be reached now, but the running hub has not reached it yet. It reports: "
                f"{said}. It retries automatically; if this persists, its user has other keys, or it was "
                "started before the configuration was changed",
            )
        else:
            self._journal.skipped("hub", f"shows it {node.state}")

    async def _hub_when_it_has_looked(self, node_id: str) -> HubNode | None:
        """Give a hub that has just started or is busy time to reach the node, or to say why it cannot."""
        deadline = time.monotonic() + HUB_LOOKS_SECONDS
        while True:
            node = await self._ask_hub(node_id)
            if node is None or node.state == "live" or trouble_of(node) is not None:
                return node
            if time.monotonic() >= deadline:
                return node
            await asyncio.sleep(HUB_ASKED_EVERY_SECONDS)

    # -- nodes that come by themselves -----------------------------------------------------------------------------

    async def _ask_hub(self, node_id: str) -> HubNode | None:
        try:
            return await self._api.node(node_id)
        except NoHub:
            return None

    async def _known_to_hub(self) -> HubNode | None:
        if self._health is None:
            return None
        try:
            nodes = await self._api.nodes()
        except NoHub as error:
            self._no_word = str(error)
            return None
        wanted = names_of(self._host)
        return next((node for node in nodes if node.id in wanted or node.name == self._host), None)

    async def _dropped(self) -> FoundDrop | None:
        for settings in self._config.folders:
            try:
                self._folders.append(await look_into(settings, self._config.folder))
            except Failed as error:
                self._journal.failed("folder", "cannot be read", str(error))
        return next(
            (found for folder in self._folders if (found := folder.find(self._host)) is not None), None
        )

    async def _arrived(self, node: HubNode, drop: FoundDrop | None) -> None:
        kind = "has enrolled" if node.way == "push" else f"connects on its own ({node.way})"
        self._journal.ok("listed", f"not in any list: it {kind} and is known to the hub as {node.id}")
        if node.way == "file" and drop is None and self._config.folders:
            paths = ", ".join(str(folder.path) for folder in self._folders)
            self._journal.failed(
                "folder",
                "no files",
                f"there are no files of {node.name} in {paths}; check that they are copied there",
            )
        elif drop is not None:
            await judge_drop(self._journal, drop)
        if self._health is not None:
            await HubWord(self._api, self._health, node, self._journal).tell()

    def _tell_unknown(self, drop: FoundDrop) -> None:
        """Say why the hub does not show a host whose files are there."""
        if self._health is None:
            self._journal.failed(
                "hub",
                "not running",
                how_to_start(
                    "the hub",
                    f"no hub responds at {self._api.url} ({self._no_hub})",
                    "gpuherd-hub",
                    "gpuherd hub run",
                ),
            )
        elif self._no_word:
            self._journal.skipped("hub", self._no_word)
        elif is_well(self._journal.steps):
            folder = str(drop.folder.settings.path)
            left_out = next(
                (reason for reason in self._health.reasons if folder in reason and "not shown" in reason), ""
            )
            self._journal.failed(
                "hub",
                "does not know it",
                f"the running hub does not show {drop.host}: "
                + (left_out or "it was started with another configuration, or has not read the folder yet"),
            )

    def _other_places(self) -> list[str]:
        """Name where nodes come by themselves."""
        places = [
            f"the folder {folder.path} ({plural(len(folder.drops), 'node')})" for folder in self._folders
        ]
        if self._config.legacy.gpustat is not None and self._health is not None:
            places.append("the posts to legacy.gpustat")
        return places

    # -- unknown ones ----------------------------------------------------------------------------------------------

    async def _unlisted(self, lists: Sequence[FoundList]) -> None:
        if self._no_word and not any(found.nodes for found in lists):
            self._journal.failed(
                "listed", "not told", f"only the hub knows whether {self._host} is enrolled: {self._no_word}"
            )
            return
        names = [node.target.name for found in lists for node in found.nodes]
        names += [name for folder in self._folders for name in folder.drops]
        if self._health is not None:
            names += [node.node_id for node in self._health.nodes]
        broken = next((found for found in lists if found.trouble), None)
        if broken is not None:
            remedy = (
                f"{broken.name} cannot be read, which may be why {self._host} is missing: {broken.trouble}"
            )
        else:
            unknown = (
                "the hub does not know it either"
                if self._health is not None
                else "no hub runs here to tell whether it is enrolled"
            )
            near = resembling(self._host, names) or "; list it in a [[nodes]] table, or enrol it"
            remedy = (
                f"{self._host} is not in any list ({looked_in(lists, self._other_places())}) and "
                f"{unknown}{near}"
            )
        self._journal.failed("listed", "not in any list", remedy)
        try:
            target = structs.replace(parse_host(self._host, "the command line"), place="what you typed")
        except Misconfigured:
            return
        reach = next(
            (group.reach for group in self._config.nodes if isinstance(group.reach, SshSettings)),
            SshSettings(),
        )
        self._tell_user("ssh")
        await Walk(self._config, target, reach, self._journal).run()
