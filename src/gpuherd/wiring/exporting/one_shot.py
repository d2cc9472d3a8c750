"""The herd as it is right now, asked without a hub: every listed node once, side by side."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import structs

from gpuherd.agent.spec import resolve
from gpuherd.api.contact import contact_problem
from gpuherd.auth.node_ids import node_id_for
from gpuherd.client.herd_views import Herd
from gpuherd.discovery.settings import IniSettings
from gpuherd.fleet.clock import Clock, SystemClock
from gpuherd.fleet.fleet import Fleet
from gpuherd.fleet.views import FleetNotice, FleetView
from gpuherd.model.errors import Misconfigured, Refused
from gpuherd.model.people import PrivacyClass
from gpuherd.model.reports import Report
from gpuherd.model.targets import Target
from gpuherd.model.text import SENTENCE_LENGTH, clean
from gpuherd.sources.following import ContactFailed, Way
from gpuherd.sources.push import NodeLinks
from gpuherd.sources.settings import PullSettings, ReachSettings, SshSettings
from gpuherd.wiring.catalog import WAYS
from gpuherd.wiring.config import Config, read_config
from gpuherd.wiring.exporting.targets import SeenHerd
from gpuherd.wiring.lookup import FoundList, find_lists
from gpuherd.wiring.settings import NodesSettings
from gpuherd.wiring.shown_names import display_names
from gpuherd.wiring.ways.surroundings import Surroundings

__all__ = ["ask_once", "config_of_ini"]

log = logging.getLogger(__name__)

LOGINS_AT_ONCE = 32
"""All at once, as far as this machine's own processor is worth sparing."""
ASKED_AT_ONCE = 64
"""The deadline of a host begins when its turn comes: with thousands, none is blamed for the time that others take."""
CONNECT_SECONDS = 10.0
COMMAND_SHARE = 1 / 3
"""Of the deadline: a command that hangs is ended early enough for the rest of the round to arrive."""
CLOSING_SECONDS = 2.0


def config_of_ini(file: Path) -> Config:
    """Give the configuration of a hub that asks the hosts of an older tool's config.ini over SSH, in its order."""
    nodes = NodesSettings(reach=SshSettings(), find=IniSettings(file=file.absolute()))
    config = read_config("", str(file), folder=file.absolute().parent)
    return structs.replace(config, nodes=(nodes,))


async def ask_once(
    config: Config, *, deadline_seconds: float, privacy: PrivacyClass = "member", clock: Clock | None = None
) -> SeenHerd:
    """Ask every node that the configuration lists. One that does not answer in time is shown with the reason.

    ``Misconfigured`` if no list can be had at all. Pseudonyms are good for this one time.
    """
    clock = clock or SystemClock()
    if not config.nodes:
        raise Misconfigured(
            f"{config.source.name}: there is no [[nodes]] table, so there is nothing to poll; add one, or "
            "query a hub with --hub"
        )
    lists = await find_lists(config)
    troubles = [found.trouble for found in lists if found.trouble is not None]
    if len(troubles) == len(lists):
        raise Misconfigured("; ".join(troubles))
    if not troubles and not any(found.nodes for found in lists):
        raise Misconfigured(f"{config.source.name}: the lists contain no hosts, so there is nothing to poll")
    fleet = Fleet(
        clock=clock, settings=config.availability, names=display_names(config), privacy=config.privacy
    )
    notices = await _Inquiry(config, fleet, clock, deadline_seconds).ask(lists)
    fleet.set_notices(
        tuple(FleetNotice(code="list_failed", message=clean(text, SENTENCE_LENGTH)) for text in troubles)
        + notices
    )
    fleet.tick()
    return _seen(fleet, privacy)


def _seen(fleet: Fleet, privacy: PrivacyClass) -> SeenHerd:
    view, face = fleet.view(), fleet.face(privacy)
    nodes = []
    for node in view.nodes:
        shown = face.node(node)
        # Someone who looks for the first time does not know since when it is so.
        devices = tuple(
            structs.replace(device, availability=structs.replace(device.availability, since=None))
            for device in shown.devices
        )
        nodes.append(structs.replace(shown, devices=devices))
    told = FleetView(
        time=view.time,
        tick=view.tick,
        notices=face.notices(view.notices),
        totals=view.totals,
        nodes=tuple(nodes),
    )
    return SeenHerd(herd=msgspec.convert(told, Herd, from_attributes=True), answer=msgspec.json.encode(told))


class _Asked:
    """One node: where its first report goes."""

    def __init__(self, node_id: str, fleet: Fleet, round_seconds: float) -> None:
        self._node_id = node_id
        self._fleet = fleet
        # The herd is judged when the last has answered: until then nobody else's report is old.
        self._interval_seconds = max(round_seconds, 1.0)
        self.answered = asyncio.Event()

    @property
    def node_id(self) -> str:
        """Its id."""
        return self._node_id

    def take(self, report: Report) -> None:
        """Take the first report, and what may follow before we have hung up."""
        self._fleet.accept_report(self._node_id, report, self._interval_seconds)
        self.answered.set()


class _Inquiry:
    """Asks everyone, each within the deadline and for itself."""

    def __init__(self, config: Config, fleet: Fleet, clock: Clock, deadline_seconds: float) -> None:
        self._config = config
        self._fleet = fleet
        self._clock = clock
        self._deadline_seconds = deadline_seconds
        self._turns = asyncio.Semaphore(ASKED_AT_ONCE)
        self._round_seconds = deadline_seconds
        self._closing: set[asyncio.Future[None]] = set()

    async def ask(self, lists: Sequence[FoundList]) -> tuple[FleetNotice, ...]:
        """Ask; gives what everyone should know besides."""
        surroundings = Surroundings(
            state_dir=self._config.hub.state_dir,
            links=NodeLinks(self._fleet, monotonic=self._clock.monotonic),
            folder=self._config.folder,
        )
        ways: list[Way] = []
        asking, notices = [], []
        for settings, found in zip(self._config.nodes, lists, strict=True):
            way: Way | None = None
            if not isinstance(settings.reach, PullSettings):
                way = resolve(WAYS[found.way])(self._hurried(settings.reach), surroundings)
                ways.append(way)
            for position, node in enumerate(found.nodes):
                try:
                    node_id = self._add(node.target, settings.reach, position)
                except Refused as error:
                    notices.append(
                        FleetNotice(
                            code="node_refused",
                            message=clean(f"{node.target.name} is skipped: {error}", SENTENCE_LENGTH),
                        )
                    )
                    continue
                asking.append(self._ask(node_id, node.target, way))
        self._round_seconds = self._deadline_seconds * math.ceil(len(asking) / ASKED_AT_ONCE)
        await asyncio.gather(*asking)
        if self._closing:
            await asyncio.wait(self._closing, timeout=CLOSING_SECONDS)
        for way in ways:
            await way.close()
        return tuple(notices)

    def _hurried(self, reach: ReachSettings) -> ReachSettings:
        """Fit a way's settings to someone who waits, and who shows no command lines to anyone."""
        if not isinstance(reach, SshSettings):
            return reach
        return structs.replace(
            reach,
            connects_at_once=max(reach.connects_at_once, LOGINS_AT_ONCE),
            connect_deadline_seconds=min(
                reach.connect_deadline_seconds, CONNECT_SECONDS, self._deadline_seconds
            ),
            command_deadline_seconds=max(
                1.0, min(reach.command_deadline_seconds, COMMAND_SHARE * self._deadline_seconds)
            ),
            command_lines="none" if reach.command_lines == "none" else "program",
        )

    def _add(self, target: Target, reach: ReachSettings, position: int) -> str:
        node_id = node_id_for(target.name)
        if self._fleet.has_node(node_id):
            raise Refused("name_taken", f"another entry of the lists is already called {node_id}")
        way = str(reach.__struct_config__.tag)
        self._fleet.add_node(node_id, target.name, way, position)  # type: ignore[arg-type]
        return node_id

    async def _ask(self, node_id: str, target: Target, way: Way | None) -> None:
        """Ask one node; whatever goes wrong is shown of it and touches no other."""
        async with self._turns:
            failure = await self._answer(node_id, target, way)
        if failure is not None:
            self._fleet.note(node_id, "contact", contact_problem(failure, self._clock.wall()))

    async def _answer(self, node_id: str, target: Target, way: Way | None) -> ContactFailed | None:
        name = clean(target.name)
        if way is None:
            # It hands over what it has kept to whoever asks: that must be the hub.
            return ContactFailed("no_data", f"{name}: only its hub can poll a listening agent; use --hub")
        asked = _Asked(node_id, self._fleet, self._round_seconds)
        following = asyncio.ensure_future(way.follow(target, asked))
        answered = asyncio.ensure_future(asked.answered.wait())
        await asyncio.wait(
            {following, answered}, timeout=self._deadline_seconds, return_when=asyncio.FIRST_COMPLETED
        )
        answered.cancel()
        if not following.done():
            following.cancel()
            self._closing.add(following)
            following.add_done_callback(_forget_outcome)
            if asked.answered.is_set():
                return None
            return ContactFailed(
                "timeout", f"{name}: no report within {self._deadline_seconds:g} s; is it overloaded?"
            )
        if asked.answered.is_set():
            _forget_outcome(following)
            return None
        return self._failure(following, name)

    def _failure(self, following: asyncio.Future[None], name: str) -> ContactFailed:
        try:
            following.result()
        except ContactFailed as failure:
            return failure
        except Refused as refusal:
            return ContactFailed("garbled", f"{name}: {refusal}")
        except asyncio.CancelledError:
            return ContactFailed("link_lost", f"{name}: the connection was cancelled")
        except Exception as error:
            log.exception("unexpected error while polling %s", name)
            return ContactFailed("hub_error", f"{name}: {type(error).__name__} in gpuherd")
        return ContactFailed("link_lost", f"{name}: the connection has ended")


def _forget_outcome(following: asyncio.Future[None]) -> None:
    """Look at how it ended, so that nobody is warned that no one did."""
    if not following.cancelled():
        following.exception()
