"""The hub: state, loops, store and server put together."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self, cast

from gpuherd import __version__
from gpuherd.api.admission import Admission
from gpuherd.api.agent_socket import AgentSocket
from gpuherd.api.app import HubApp
from gpuherd.api.asgi import App, header
from gpuherd.api.booking_attendants import BookingAttendants
from gpuherd.api.booking_desk import BookingDesk
from gpuherd.api.calendars import Calendars
from gpuherd.api.command_reads import CommandReads
from gpuherd.api.connections import ConnectionWatch
from gpuherd.api.front import Front, open_front
from gpuherd.api.glances import SentGlance
from gpuherd.api.guard import Guard
from gpuherd.api.health import Health, HealthSummary, LinkHealth, failing_reason, health_for
from gpuherd.api.herd_views import HerdViews
from gpuherd.api.history_service import HistoryService, UsageService
from gpuherd.api.hub_clock import hub_clock_notice
from gpuherd.api.hub_lease import RENEW_SECONDS, Lease, own_lease
from gpuherd.api.keeping import Keeper
from gpuherd.api.known_nodes import FILE_NAME, listed_ids, load_known
from gpuherd.api.no_history import NoHistory, NoUsage
from gpuherd.api.node_log import NodeLog
from gpuherd.api.one_page import OnePage
from gpuherd.api.open_records import OpenRecords, open_hub_records
from gpuherd.api.openapi import schema_of
from gpuherd.api.outfit import BareOutfit, Door, Outfit
from gpuherd.api.overload import LOOK_SECONDS, Overload, Pressure
from gpuherd.api.page_files import PAGE_FOLDER, PageFiles
from gpuherd.api.people import PeopleDesk
from gpuherd.api.reception import Reception, actor_of
from gpuherd.api.record_calls import RecordCalls
from gpuherd.api.records_care import MISSING, RecordsCare
from gpuherd.api.remembering import PastOutfit, Remembering
from gpuherd.api.rest import build_rest
from gpuherd.api.roster import FINDING, Roster
from gpuherd.api.sender import Senders
from gpuherd.api.server import TlsFiles, WebServer, claim_address
from gpuherd.api.settings import HubSettings
from gpuherd.api.sockets import Connections
from gpuherd.api.state_dir import lock_state_dir, make_state_dir
from gpuherd.api.static_file import BuiltFile
from gpuherd.api.stream import LiveStream
from gpuherd.api.supervision import Loop, Supervisor
from gpuherd.api.threads import BoundedThreads
from gpuherd.api.unfinished import UnfinishedMessages
from gpuherd.auth.enrolment import Enrolled, Enrolment
from gpuherd.auth.local_key import make_local_key
from gpuherd.auth.secrets import digest
from gpuherd.auth.settings import LoginSettings
from gpuherd.auth.setup import setup_link
from gpuherd.auth.ways import LoginWays
from gpuherd.bookings.settings import BookingSettings
from gpuherd.fleet.clock import Clock, SystemClock
from gpuherd.fleet.fleet import Fleet
from gpuherd.fleet.names import Names
from gpuherd.fleet.pseudonyms import LastingPseudonyms, Pseudonyms
from gpuherd.fleet.recent import RecentView
from gpuherd.fleet.settings import AvailabilitySettings, PrivacySettings
from gpuherd.fleet.views import DeviceView, FleetNotice, FleetView, NodeView, UserView
from gpuherd.model.device_memory import GpuAction, MemoryChanges
from gpuherd.model.errors import Failed, Refused
from gpuherd.model.people import HUB, Actor, PrivacyClass, Viewer
from gpuherd.model.reports import Report
from gpuherd.model.targets import NodeWay
from gpuherd.records.last_reports import LastReports
from gpuherd.records.nodes import EnrolledNodes
from gpuherd.sources.push import NodeLinks

__all__ = ["Hub"]

log = logging.getLogger(__name__)

FLUSH_SECONDS = 0.4
RECORDS_SECONDS = 1.0
SWEEP_SECONDS = 5.0
UNFINISHED_SECONDS = 0.25
CONNECTION_SECONDS = 0.1
KEY_USE_SECONDS = 60.0
FORGET_SECONDS = 600.0
CARE_SECONDS = 2.0
CHECK_SECONDS = 86_400.0
SAVE_SECONDS = 6.0
"""Time for saving at the end; a disk may hang."""
CLOSE_SECONDS = 7.0
"""Time after that for closing files and databases."""
PSEUDONYM_SECRET = "pseudonyms"  # noqa: S105 - its name in the records
USAGE_PSEUDONYM_SECRET = "usage pseudonyms"  # noqa: S105 - another one: what is public must not tell who it was


def _tls_files(settings: HubSettings) -> TlsFiles | None:
    if settings.tls_certificate is None or settings.tls_key is None:
        return None
    return TlsFiles(settings.tls_certificate, settings.tls_key)


class Hub:
    """A running hub: ``async with Hub(settings) as hub: await hub.run_until(stop)``."""

    def __init__(
        self,
        settings: HubSettings,
        availability: AvailabilitySettings | None = None,
        clock: Clock | None = None,
        *,
        outfit: Outfit | None = None,
        names: Names | None = None,
        privacy: PrivacySettings | None = None,
        bookings: BookingSettings | None = None,
        login: LoginSettings | None = None,
        ways: LoginWays | None = None,
        past: PastOutfit | None = None,
        open_store: Callable[[Path], LastReports] = LastReports,
        page_folder: Path = PAGE_FOLDER,
    ) -> None:
        """Without ``past`` nothing is remembered beyond the last minutes."""
        settings.check()
        self.settings = settings
        self.clock = clock or SystemClock()
        self.fleet = Fleet(
            clock=self.clock,
            settings=availability or AvailabilitySettings(),
            names=names,
            privacy=privacy,
            tick_seconds=settings.tick_seconds,
        )
        self.links = NodeLinks(
            self.fleet,
            monotonic=self.clock.monotonic,
            note=self.fleet.note,
            past_pause_seconds=self.fleet.past_pause_seconds,
        )
        self._incoming = Connections(self.clock.monotonic)
        self._unfinished = UnfinishedMessages(self._incoming, self.clock.monotonic)
        self._memory_lock = asyncio.Lock()
        """For who writes what is remembered of devices: older values must not be written after newer ones."""
        self._reads = CommandReads(self.clock, is_public=self.fleet.shows_command_lines)
        self._views = HerdViews(self.fleet, self._reads)
        self.stream = LiveStream(
            self.fleet,
            max_viewers=settings.max_viewers,
            max_viewers_per_account=settings.max_viewers_per_account,
            wall=self.clock.wall,
            note_watching=self._reads.note_stream,
        )
        self._outfit: Outfit = outfit or BareOutfit()
        self._roster: Roster | None = None
        self._doors: Sequence[Door] = ()
        self._open_store = open_store
        self._page_folder = page_folder
        self._supervisor = Supervisor(self.clock)
        self._ticking: Loop | None = None
        self._watches: list[Loop] = []
        self._login = login or LoginSettings()
        self._ways = ways or LoginWays()
        self._booking_settings = bookings or BookingSettings()
        self._front: Front | None = None
        self._desk: BookingDesk | None = None
        self._calendars: Calendars | None = None
        self._remembering: Remembering | None = None
        if past is not None and past.history.enabled:
            self._remembering = Remembering(
                past, state_dir=settings.state_dir, fleet=self.fleet, links=self.links, clock=self.clock
            )
        self._overload = Overload(
            pressure=self._pressure,
            set_stretch=self.links.set_stretch,
            asked_count=lambda: self.links.asked_count,
            clock=self.clock,
        )
        self._history: HistoryService = NoHistory()
        self._usage: UsageService = NoUsage()
        self._attendants: BookingAttendants | None = None
        self._admission: Admission | None = None
        self._keeper: Keeper | None = None
        self._care: RecordsCare | None = None
        self._node_log = NodeLog(
            self.fleet.node_states,
            monotonic=self.clock.monotonic,
            quiet_seconds=self.fleet.settings.offline_after_seconds,
        )
        self._last_reports: LastReports | None = None
        self._state_damage: FleetNotice | None = None
        self._server: WebServer | None = None
        self._connections = ConnectionWatch(
            self._incoming,
            is_proxy=Senders(settings.trusted_proxies).is_proxy,
            monotonic=self.clock.monotonic,
        )
        self._lock: int | None = None
        self._lease: Lease | None = None
        self._started_at = self.clock.monotonic()

    # -- life --------------------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        """Open the records, bring back the last state, listen and start the loops; ``Misconfigured`` if it cannot."""
        claim_address(self.settings.address)  # before anything is touched: the commonest reason not to start
        make_state_dir(self.settings.state_dir)
        self._lock = lock_state_dir(self.settings.state_dir)
        try:
            records = await asyncio.to_thread(open_hub_records, self.settings)
            self._front = open_front(
                self.settings,
                self._login,
                self._ways,
                records=records,
                clock=self.clock,
                shown_user=self.fleet.names.user,
            )
            if self.settings.records_url is not None:
                # Before anything is read, so that a restore either sees this hub or has finished.
                self._lease = own_lease(records.engine, self._front.calls)
                await self._lease.renew()
            self._care = RecordsCare(records.engine, self.settings.state_dir, monotonic=self.clock.monotonic)
            secret = await asyncio.to_thread(records.people.secret, PSEUDONYM_SECRET)
            self.fleet.set_pseudonyms(Pseudonyms(secret))
            self._desk = BookingDesk(
                self._booking_settings,
                records=records.bookings,
                calls=self._front.calls,
                herd=self.fleet,
                people=self._front.authority,
                clock=self.clock,
            )
            self._calendars = Calendars(
                records=records,
                calls=self._front.calls,
                people=self._front.authority,
                live=self._desk,
                mount=self.settings.mount,
                clock=self.clock,
            )
            self._attendants = BookingAttendants(
                self._desk,
                fleet=self.fleet,
                records=records.bookings,
                calls=self._front.calls,
                accounts=self._front.authority.accounts,
                user_of=self.fleet.names.holder,
                state_dir=self.settings.state_dir,
                hub_url=lambda: self.url,
                clock=self.clock,
            )
            self._admission = Admission(
                Enrolment(records.nodes),
                self._front.calls,
                self.clock,
                on_change=self._nodes_changed,
                on_enrolled=self._node_enrolled,
            )
            remembering = self._remembering
            keeping = None
            if remembering is not None:
                secret = await asyncio.to_thread(records.people.secret, USAGE_PSEUDONYM_SECRET)
                keeping = await remembering.open(LastingPseudonyms(secret))
                self._history, self._usage = remembering.desks(
                    self._front, self._desk, self._reads, self._booking_settings.zone
                )
            file = self.settings.state_dir / "state.sqlite"
            # In a thread: on a disk that hangs, this one still has to hear SIGTERM.
            store = self._last_reports = await asyncio.to_thread(self._open_store, file)
            self._keeper = Keeper(
                store,
                take_unsaved=self.fleet.take_unsaved,
                note_saved=self.links.note_saved,
                clock=self.clock,
                history=keeping,
            )
            self._roster = Roster(
                self.fleet,
                self._outfit.groups(self.links),
                file=self.settings.state_dir / FILE_NAME,
                clock=self.clock,
                forget=self._forget,
            )
            await self._admission.refresh()
            await self._front.identity.refresh()
            key = await asyncio.to_thread(make_local_key, self.settings.state_dir)
            self._front.identity.local_key_digest = digest(key)
            await self._desk.memory.refresh()
            self._roster.restore()
            self.fleet.memory.load(*await asyncio.to_thread(records.devices.load))
            await self._restore(store, self._care)
            self.fleet.tick()
            self._server = WebServer(
                self._app(self._admission, self._front),
                address=self.settings.address,
                max_connections=self.settings.max_connections,
                tls=_tls_files(self.settings),
            )
            await self._server.start()
            self._incoming.begin(self._server.address.port)
            self._connections.begin(self._server.capacity)
            await self._open_doors(self._roster)
        except BaseException:
            await self._close_doors()
            self._close()
            raise
        self._start_loops(self._admission, self._front, self._keeper, self._roster)
        log.info(
            "hub started: gpuherd %s, %s, state folder %s", __version__, self.url, self.settings.state_dir
        )
        return self

    def _start_loops(self, admission: Admission, front: Front, keeper: Keeper, roster: Roster) -> None:
        self._ticking = self._supervisor.add("tick", self._tick, every_seconds=self.settings.tick_seconds)
        self._supervisor.add(
            "keep last state", keeper.flush, every_seconds=FLUSH_SECONDS, deadline_seconds=None
        )
        self._supervisor.add("watch records", admission.watch, every_seconds=RECORDS_SECONDS)
        self._supervisor.add("watch people", front.identity.watch, every_seconds=RECORDS_SECONDS)
        if self.settings.public == "names":
            self._reads.note_names_shown(self.settings.public_networks)
        self._supervisor.add("remember devices", self._save_memory, every_seconds=RECORDS_SECONDS)
        self._supervisor.add("write audit log", self._write_reads, every_seconds=RECORDS_SECONDS)
        self._supervisor.add("record use of keys", front.identity.note_use, every_seconds=KEY_USE_SECONDS)
        self._supervisor.add("delete old data", self.forget_old, every_seconds=FORGET_SECONDS)
        self._supervisor.add("check the database", self._look_after_records, every_seconds=CARE_SECONDS)
        self._supervisor.add(
            "check records", self._check_records, every_seconds=CHECK_SECONDS, deadline_seconds=None
        )
        self._supervisor.add("watch bookings", self.bookings.memory.refresh, every_seconds=RECORDS_SECONDS)
        self._supervisor.add("watch connections", self._connections.look, every_seconds=CONNECTION_SECONDS)
        self._supervisor.add("sweep links", self._sweep, every_seconds=SWEEP_SECONDS)
        self._supervisor.add(
            "watch unfinished messages", self._unfinished.watch, every_seconds=UNFINISHED_SECONDS
        )
        self._supervisor.add("watch the load", self._overload.look, every_seconds=LOOK_SECONDS)
        if self._lease is not None:
            self._supervisor.add("renew the lease", self._lease.renew, every_seconds=RENEW_SECONDS)
        for watch in self._outfit.watches(roster):
            self._watches.append(
                self._supervisor.add(
                    watch.name, watch.look, every_seconds=watch.look_every_seconds, deadline_seconds=None
                )
            )
        for chore in self._outfit.chores(self):
            self._supervisor.add(
                chore.name, chore.look, every_seconds=chore.look_every_seconds, deadline_seconds=None
            )
        roster.start(self._supervisor)
        if self._remembering is not None:
            self._remembering.start(self._supervisor)
        if self._attendants is not None:
            self._attendants.start(self._supervisor)

    async def _open_doors(self, roster: Roster) -> None:
        opened: list[Door] = []
        self._doors = opened
        for door in self._outfit.doors(self, roster):
            opened.append(door)
            await door.start()

    async def _close_doors(self) -> None:
        await asyncio.gather(*(door.stop() for door in self._doors))

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Save and acknowledge what is there, part politely from nodes and viewers, save the rest."""
        deadline = asyncio.get_running_loop().time() + SAVE_SECONDS
        await self._supervisor.stop()
        try:
            async with asyncio.timeout_at(deadline):
                await self._write_reads()
        except (Failed, TimeoutError) as trouble:
            log.warning("cannot write to the audit log who has read command lines: %s", trouble)
        try:
            async with asyncio.timeout_at(deadline):
                await self._look_after_records()
        except (Failed, TimeoutError) as trouble:
            log.warning("cannot save the check numbers of the database: %s", trouble)
        await self._close_doors()
        if self._roster is not None:
            await self._roster.stop()
        await self._flush_at_end(deadline)
        await self.links.close_all()
        await self.stream.close()
        if self._server is not None:
            await self._server.stop()
        await self._flush_at_end(deadline)
        if self._lease is not None:
            await self._lease.end()
        closing = BoundedThreads("close", threads=1, max_waiting=1, deadline_seconds=CLOSE_SECONDS)
        try:
            await closing.run(self._close)
        except TimeoutError:
            log.warning(
                "the disk does not respond: stopped without closing files; no confirmed report is lost; check the disk"
            )
        finally:
            closing.close()
        log.info("hub stopped")

    def _close(self) -> None:
        if self._keeper is not None:
            self._keeper.close()
        if self._remembering is not None:
            self._remembering.close()
        if self._front is not None:
            self._front.close()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    async def run_until(self, stop: asyncio.Event) -> None:
        """Serve until ``stop`` is set; ``Failed`` if the web server ends before that."""
        if self._server is None:
            raise RuntimeError("the hub has not started")
        stopping = asyncio.ensure_future(stop.wait())
        serving = asyncio.ensure_future(self._server.wait_until_stopped())
        try:
            await asyncio.wait({stopping, serving}, return_when=asyncio.FIRST_COMPLETED)
            if not stopping.done():
                raise Failed("the web server has stopped unexpectedly; start the hub again")
        finally:
            stopping.cancel()
            serving.cancel()

    @property
    def url(self) -> str:
        """Where the page is."""
        address = self.settings.address if self._server is None else self._server.address
        scheme = "http" if self.settings.tls_certificate is None else "https"
        return f"{scheme}://{address}{self.settings.mount}/"

    @property
    def beats(self) -> int:
        """Renewals of the live state so far, also those that failed: a number that stands still is a hub that hangs."""
        if self._ticking is None:
            return 0
        ticking = self._ticking.health()
        return ticking.rounds + ticking.errors

    def notices(self) -> tuple[FleetNotice, ...]:
        """Say what is wrong with the hub's own disk, records and clock."""
        said = () if self._care is None else self._care.notices()
        damage = None if self._last_reports is None else self._last_reports.damage
        if damage is not None:
            if self._state_damage is None or self._state_damage.message != damage:
                self._state_damage = FleetNotice(
                    code="state_damaged", message=damage, since=self.clock.wall()
                )
            said = (*said, self._state_damage)
        doubt = None if self.fleet.intake is None else self.fleet.intake.hub_clock_doubt
        return said if doubt is None else (*said, hub_clock_notice(doubt))

    @property
    def are_records_missing(self) -> bool:
        """Whether the records are empty although this hub has had some."""
        return self._care is not None and self._care.is_missing

    async def admit(self, name: str) -> Enrolled:
        """Enrol without a token, for the machine the hub runs on; an old credential of that name becomes void."""
        if self.are_records_missing:
            raise Refused("records_missing", MISSING)
        return await self._admitted.admit(name)

    async def setup_link(self) -> str | None:
        """Make a link that creates the first admin, and void earlier ones; None if there is an admin.

        Also None while records are missing: they may contain an admin.
        """
        if self.are_records_missing:
            return None
        code = await self._entered.new_setup_code()
        address = self.settings.address if self._server is None else self._server.address
        return None if code is None else setup_link(self.settings.url_at(address), code)

    def _app(self, admission: Admission, front: Front) -> HubApp:
        rest, senders = build_rest(self), Senders(self.settings.trusted_proxies)
        return HubApp(
            mount=self.settings.mount,
            guard=Guard(
                [*self.settings.allowed_hosts, socket.gethostname()],
                is_https=lambda scope: senders.of(scope).is_https,
            ),
            identification=front.identity,
            socket=AgentSocket(
                self.links,
                lambda scope: admission.node_of(header(scope, b"authorization"), senders.of(scope).address),
                admission.known_node,
                self._unfinished,
            ),
            stream=self.stream,
            rest=cast("App", rest),
            page=PageFiles(self._page_folder, self.settings.mount),
            one_page=OnePage(self.calm_view, lambda view: self._outfit.one_page(view, self.zone)),
            schema=BuiltFile("openapi.json", lambda: schema_of(rest)),
            connections=self._connections,
            check_crowd=front.reception.check_crowd,
            is_tls=self.settings.tls_certificate is not None,
        )

    async def _restore(self, store: LastReports, care: RecordsCare) -> None:
        last = store.load_all()
        known = {kept.node_id for kept in last}
        if self._remembering is not None:
            remembered = self._remembering.node_ids()
            gone = sum(self.fleet.has_node(node_id) for node_id in remembered - known)
            if gone:
                log.warning(
                    "the last state of %d nodes is missing in state.sqlite; the nodes send it again; check the disk",
                    gone,
                )
            known |= remembered
        known -= listed_ids(load_known(self.settings.state_dir / FILE_NAME))
        await asyncio.to_thread(care.open, known, self.clock.wall())
        if care.is_missing:  # there may have been accounts: this is no new hub that anyone here may look at
            self._entered.identity.is_open_at_first = False
        for kept in last:
            if self.fleet.has_node(kept.node_id):
                self.fleet.restore(kept)
                self.links.note_saved([(kept.node_id, kept.runs)])
            elif self._keeper is not None and not care.is_missing:
                self._keeper.forget(kept.node_id)
        if self._remembering is not None:
            self._remembering.know(last, forgets=not care.is_missing)

    # -- loops -------------------------------------------------------------------------------------------------

    async def _tick(self) -> None:
        self._views.renew()
        if self._roster is not None and self._attendants is not None:
            self.fleet.set_notices(
                (
                    *self._outfit.notices(),
                    *self._roster.notices(),
                    *self._watch_notices(),
                    *self._attendants.notices(),
                    *self.notices(),
                    *self._overload.notices(),
                )
            )
        self.fleet.tick()
        self.stream.drop(self._is_someone_else_now)
        self.stream.publish()

    def _is_someone_else_now(self, viewer: Viewer) -> bool:
        return not self._entered.identity.is_current(viewer)

    def _watch_notices(self) -> list[FleetNotice]:
        """Tell why nothing new comes of the nodes of a folder."""
        return [
            FleetNotice(
                code="watch_failed",
                message=watch.health().last_error or watch.name,
                since=watch.failing_since,
            )
            for watch in self._watches
            if watch.failing_since is not None
        ]

    def _pressure(self) -> Pressure:
        lag_seconds = 0.0 if self._remembering is None else self._remembering.lag_seconds()
        return Pressure(lag_seconds, self.fleet.reading_delay_seconds())

    async def _sweep(self) -> None:
        self.links.sweep()
        self.fleet.note_duplicates()
        self._node_log.look()
        if self._roster is not None:
            self._roster.sweep()

    async def settle_gpu(
        self, viewer: Viewer, node_id: str, uuid: str, action: GpuAction
    ) -> tuple[str, ...] | None:
        """Forget a missing GPU, or acknowledge its faults and give which; None if there is no such GPU.

        Nothing changes if it cannot be written.
        """
        plan = self.fleet.memory.plan_forget if action == "forget" else self.fleet.plan_acknowledge
        async with self._memory_lock:
            await self._save_noticed()
            changes = plan(node_id, uuid)
            if changes:
                await self._save_changes(changes, actor_of(viewer))
                self.fleet.settle(node_id, changes)
        if changes is None:
            return None
        return tuple(fault.message for fault in changes.faults.values() if fault is not None)

    async def _save_memory(self) -> None:
        """Write what the fleet remembers of devices into the records."""
        async with self._memory_lock:
            await self._save_noticed()

    async def _save_noticed(self) -> None:
        changes = self.fleet.memory.take_changes()
        if changes:
            try:
                await self._save_changes(changes, HUB)
            except BaseException:
                self.fleet.memory.put_back(changes)
                raise

    async def _save_changes(self, changes: MemoryChanges, by: Actor) -> None:
        await self.record_calls.run(self.records.devices.save, changes, now=self.clock.wall(), by=by)

    async def _write_reads(self) -> None:
        await self._reads.write(lambda deeds: self.record_calls.run(self.records.audit.append, deeds))

    async def _flush_at_end(self, deadline: float | None = None) -> None:
        if self.fleet.intake is not None:
            self.fleet.intake.release()  # there is no tick to come
        if self._keeper is not None:
            try:
                async with asyncio.timeout_at(deadline):
                    await self._keeper.flush()
            except (Failed, TimeoutError) as error:
                reason = error if str(error) else "the disk does not respond"
                log.warning(
                    "cannot save the last state of the nodes: %s; the nodes will send it again", reason
                )

    async def forget_old(self) -> None:
        """Delete what is past its retention, once the clock can be trusted."""
        await self._entered.forget_old()

    async def _look_after_records(self) -> None:
        if self._care is not None:
            await self.record_calls.run(self._care.look)

    async def _check_records(self) -> None:
        if self._care is not None:
            await asyncio.to_thread(self._care.check, self.clock.wall())

    def _nodes_changed(self, before: EnrolledNodes | None, now: EnrolledNodes) -> None:
        self._views.renew()
        known = {node.id for node in before.nodes} if before is not None else set()
        for node_id in known - {node.id for node in now.nodes}:
            self.fleet.remove_node(node_id)
            self.links.close_node(node_id)
            self._forget(node_id)
        if self._roster is not None:
            # Before the new ones are added: a listed node that has enrolled is no longer asked.
            self._roster.set_enrolled({node.id for node in now.nodes})
        for node in now.nodes:
            if node.id not in known:
                self.fleet.add_node(node.id, node.name)
        if before is not None:
            for digest, node_id in before.credentials.items():
                if digest not in now.credentials:
                    self.links.close_node(node_id)

    def _node_enrolled(self, node: Enrolled) -> None:
        """Add a node that has just enrolled here, so that the next read of the records finds nothing new about it."""
        self._views.renew()
        if self._roster is not None:
            self._roster.add_enrolled(node.node_id)
        self.fleet.add_node(node.node_id, node.name)

    def _forget(self, node_id: str) -> None:
        self.links.forget_node(node_id)
        if self._keeper is not None:
            self._keeper.forget(node_id)

    # -- what the resources ask for ----------------------------------------------------------------------------

    @property
    def _admitted(self) -> Admission:
        if self._admission is None:
            raise RuntimeError("the hub has not started")
        return self._admission

    @property
    def _entered(self) -> Front:
        if self._front is None:
            raise RuntimeError("the hub has not started")
        return self._front

    @property
    def records(self) -> OpenRecords:
        """What is kept for good; its verbs block."""
        return self._entered.records

    @property
    def record_calls(self) -> RecordCalls:
        """Where the verbs of the records are called."""
        return self._entered.calls

    @property
    def reception(self) -> Reception:
        """Logging in and out."""
        return self._entered.reception

    @property
    def people(self) -> PeopleDesk:
        """Accounts and what belongs to them."""
        return self._entered.people

    @property
    def mount(self) -> str:
        """The path below which the hub is reached, without its last slash."""
        return self.settings.mount

    @property
    def zone(self) -> str:
        """Time zone of times that come without one."""
        return self._booking_settings.zone

    @property
    def bookings_enabled(self) -> bool:
        """Whether anything can be booked."""
        return self._booking_settings.enabled

    @property
    def calendars(self) -> Calendars:
        """Bookings for calendar programs."""
        if self._calendars is None:
            raise RuntimeError("the hub has not started")
        return self._calendars

    @property
    def bookings(self) -> BookingDesk:
        """Who has which device when."""
        if self._desk is None:
            raise RuntimeError("the hub has not started")
        return self._desk

    @property
    def history(self) -> HistoryService:
        """Numbers over time."""
        return self._history

    @property
    def usage(self) -> UsageService:
        """Who used what."""
        return self._usage

    async def fleet_view(self, viewer: Viewer) -> FleetView:
        """Give everything that the viewer may see."""
        await self._views.prepare(viewer)
        return self._views.herd(viewer)

    async def glance(self, viewer: Viewer) -> SentGlance:
        """Give what is free and who has what."""
        return await self._views.glance(viewer)

    async def called_view(self, viewer: Viewer, name: str) -> FleetView:
        """Give only the nodes that go by a name; all, if too many do."""
        return self._views.called(viewer, name) or await self.fleet_view(viewer)

    async def calm_view(self, privacy: PrivacyClass) -> FleetView:
        """Give everything that a class may see."""
        return await self._views.calmly(privacy)

    def door_view(self, way: NodeWay) -> FleetView:
        """Give what the page of an older tool shows."""
        return self._views.door(way)

    def node_view(self, viewer: Viewer, node_id: str) -> NodeView | None:
        """Give one node."""
        return self._views.node(viewer, node_id)

    def recent_view(self, viewer: Viewer, node_id: str, uuids: Collection[str] | None) -> RecentView | None:
        """Give a node's last minutes."""
        return self._views.recent(viewer, node_id, uuids)

    async def device_views(self, viewer: Viewer) -> tuple[DeviceView, ...]:
        """Give every device."""
        await self._views.prepare(viewer)
        return self._views.devices(viewer)

    def user_views(self, viewer: Viewer) -> tuple[UserView, ...]:
        """Give everyone who holds a device."""
        return self._views.users(viewer)

    async def enrol(
        self, *, token: str, hostname: str, name: str | None, peer: str, credential: str | None = None
    ) -> Enrolled:
        """Exchange a join token for a node credential."""
        return await self._admitted.enrol(
            token=token, name=name or hostname, peer=peer, credential=credential
        )

    def node_of(self, authorization: str | None, address: str) -> str:
        """Give the node a request comes from."""
        return self._admitted.node_of(authorization, address)

    def count_report(self, node_id: str, size_bytes: int) -> None:
        """Count a report against the node's frame rate."""
        self.links.count_report(node_id, size_bytes)

    def accept_report(self, node_id: str, report: Report) -> None:
        """Take a whole report."""
        self.fleet.accept_report(node_id, report)

    def health_view(self, viewer: Viewer) -> Health | HealthSummary:
        """Tell how the hub is doing, as far as the viewer may know."""
        return health_for(self.health(), viewer.privacy)

    def health(self) -> Health:
        """Tell how the hub is doing."""
        if self._keeper is None:
            raise RuntimeError("the hub has not started")
        loops, store, flapping = self._supervisor.health(), self._keeper.health(), self.links.flapping()
        reasons = [
            failing_reason(loop)
            for loop in loops
            if loop.state == "failing" and not loop.name.startswith(FINDING)  # told with the lists
        ]
        lists = () if self._roster is None else self._roster.health()
        reasons += [f"{found.name}: {found.trouble}" for found in lists if found.trouble is not None]
        if self._roster is not None:
            reasons += [notice.message for notice in self._roster.left_out_notices()]
        reasons += self._overload.reasons()
        history = None if self._remembering is None else self._remembering.health()
        reasons += [] if history is None else history.reasons()
        reasons += [notice.message for notice in self.notices()]
        reasons += [
            f"two machines use the credential of node {node_id}; enrol one of them again"
            for node_id in flapping
        ]
        return Health(
            status="degraded" if reasons else "ok",
            reasons=tuple(reasons),
            version=__version__,
            time=self.clock.wall(),
            uptime_seconds=self.clock.monotonic() - self._started_at,
            tick=self.fleet.tick_number,
            loops=loops,
            store=store,
            history=history,
            load=self._overload.health(),
            links=LinkHealth(
                open=self.links.open_count,
                replaced=self.links.replaced,
                refused_credentials=self._admitted.refused_credentials,
                flapping=flapping,
            ),
            lists=lists,
            viewers=self.stream.health(),
            nodes=self.fleet.node_health(),
        )
