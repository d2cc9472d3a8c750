"""The herd, live: takes what runs let through, and once per tick works out what it means."""

from __future__ import annotations

import logging
import math
import secrets
from collections.abc import Collection, Iterable, Mapping

import numpy as np

from gpuherd.fleet.availability import DECIDING_COLUMNS, assess_devices, assess_nodes
from gpuherd.fleet.booked import BookedDevices
from gpuherd.fleet.bounds import drop_lies
from gpuherd.fleet.changes import FleetChange, OwnCommands
from gpuherd.fleet.clock import Clock
from gpuherd.fleet.compose import Composer
from gpuherd.fleet.describing import (
    Models,
    copy_columns,
    count_uses,
    describe_devices,
    explain_memory,
    flag_problems,
)
from gpuherd.fleet.device_memory import DeviceMemory, missing_problem
from gpuherd.fleet.dropped import dropped_problem
from gpuherd.fleet.duplicates import Duplicates
from gpuherd.fleet.glance import Glance
from gpuherd.fleet.glancing import Glancer
from gpuherd.fleet.hygiene import clean_problems
from gpuherd.fleet.intake import Intake
from gpuherd.fleet.kept import age_seconds, last_report, play_back
from gpuherd.fleet.lateness import Lateness
from gpuherd.fleet.listing import ListedDevice, list_devices
from gpuherd.fleet.names import Names
from gpuherd.fleet.node import Node, NodeHealth, Run
from gpuherd.fleet.own import OwnedProcesses
from gpuherd.fleet.privacy import AdminFace, Face, MemberFace, NamesFace, PublicFace
from gpuherd.fleet.pseudonyms import Pseudonyms
from gpuherd.fleet.publish import Publication
from gpuherd.fleet.recent import Recent, RecentView
from gpuherd.fleet.report_run import ReportRun
from gpuherd.fleet.rows import DEVICE_COLUMN, DeviceRows, NodeRows
from gpuherd.fleet.settings import AvailabilitySettings, DisplaySettings, PrivacySettings
from gpuherd.fleet.states import KeptState, kept_states, restore_states
from gpuherd.fleet.unsampled import unsampled_groups
from gpuherd.fleet.views import (
    NODE_STATES,
    DeviceView,
    FleetNotice,
    FleetView,
    NodeState,
    NodeView,
    Totals,
    UserView,
)
from gpuherd.model.bookings import BookingUse, DeviceBookingFacts, DeviceRef
from gpuherd.model.device_memory import MemoryChanges
from gpuherd.model.errors import Refused
from gpuherd.model.people import PrivacyClass
from gpuherd.model.reports import NodeFacts, Problem, Report
from gpuherd.model.targets import NodeWay
from gpuherd.records.last_reports import LastReport
from gpuherd.wire.frames import Hello, SampleFrame
from gpuherd.wire.matrix import LAYOUT

__all__ = ["Fleet"]

log = logging.getLogger(__name__)

ENERGY_COLUMN = DEVICE_COLUMN["energy_joules"]
ECC_COLUMN = DEVICE_COLUMN["ecc_uncorrected"]


class Fleet:
    """Every node's live state. Owned by one event loop; nothing here blocks or awaits."""

    def __init__(
        self,
        *,
        clock: Clock,
        settings: AvailabilitySettings | None = None,
        names: Names | None = None,
        privacy: PrivacySettings | None = None,
        pseudonyms: Pseudonyms | None = None,
        tick_seconds: float = 1.0,
    ) -> None:
        """``tick_seconds``: how often ``tick`` is going to be called; viewers are told.

        Without ``pseudonyms``, those of this process are good until it ends.
        """
        self.clock = clock
        self.settings = settings or AvailabilitySettings()
        self.names = names or Names(DisplaySettings())
        self.tick_number = 0
        self.judged_at = clock.wall()
        """When the herd was last judged, UTC epoch seconds; until the first tick, when it was made."""
        self._nodes: dict[str, Node] = {}
        self._rows = DeviceRows()
        self._node_rows = NodeRows()
        self._models: Models = {}
        self.intake: Intake | None = None
        """Who gathers samples for history, if anyone does."""
        self._unsaved: dict[str, Node] = {}
        self._reports: dict[str, ReportRun] = {}
        self._lateness = Lateness(self._node_rows)
        self._recent = Recent(self._rows, self._node_rows, clock)
        self._booked = BookedDevices(self._rows, self._nodes)
        self._owned = OwnedProcesses(self._nodes)
        self.memory = DeviceMemory()
        """GPUs and faults that outlast the reports about them."""
        self._duplicates = Duplicates(self._nodes, self._rows, self._node_rows)
        self._privacy = privacy or PrivacySettings()
        self._public = PublicFace(pseudonyms or Pseudonyms(secrets.token_bytes(32)))
        self._names_face = NamesFace(self._public.pseudonyms)
        self._composer = Composer(
            self._rows, self._node_rows, self._nodes, self._models, clock, self.names, self._booked
        )
        self._publication = Publication(
            self._rows, self._node_rows, self._nodes, self._composer, self._booked, clock, tick_seconds
        )
        self._glancers: dict[PrivacyClass, Glancer] = {}

    def set_pseudonyms(self, pseudonyms: Pseudonyms) -> None:
        """Call people by these names in public from now on; to be called before anyone looks."""
        self._public.pseudonyms = pseudonyms

    # -- nodes -------------------------------------------------------------------------------------------------

    def add_node(
        self, node_id: str, name: str, way: NodeWay = "push", list_position: int | None = None
    ) -> None:
        """Know a node from now on; it shows as never seen until it reports."""
        node = self._nodes.get(node_id)
        if node is None:
            node = self._nodes[node_id] = Node(node_id, name, self._node_rows.allocate(1))
            self._node_rows.is_used[node.row] = True
        elif (node.name, node.way, node.list_position) == (name, way, list_position):
            return  # lists are looked at again and again: what they say anew is no news to viewers
        node.name, node.way, node.list_position = name, way, list_position
        self._publication.inventory_changed(node)

    def remove_node(self, node_id: str) -> None:
        """Forget a node and its devices."""
        node = self._nodes.pop(node_id, None)
        if node is not None:
            self._recent.forget(node)
            self._rows.release(node.start, node.count)
            self._node_rows.release(node.row, 1)
            self._unsaved.pop(node_id, None)
            self._reports.pop(node_id, None)
            self._booked.devices_moved(node_id)
            self._owned.forget(node_id)
            self._duplicates.forget(node_id)
            self.memory.forget_node(node_id)
            self._publication.node_removed(node)

    @property
    def node_count(self) -> int:
        """How many nodes are known."""
        return len(self._nodes)

    def has_node(self, node_id: str) -> bool:
        """Tell whether the node is known."""
        return node_id in self._nodes

    def note(self, node_id: str, subject: str, problem: Problem | None) -> None:
        """Say what the hub knows of a node that the node does not; none takes it back.

        ``contact``: why nothing is heard of it. It goes away by itself with the next sample.
        """
        node = self._nodes.get(node_id)
        if node is None or node.notes.get(subject) == problem:
            return
        if problem is None:
            del node.notes[subject]
        else:
            node.notes[subject] = problem
        self._publication.inventory_changed(node)

    def note_lost(self, node_id: str, samples: int) -> None:
        """Count samples that history had no room for and that cannot be sent again; show that on the node."""
        node = self._nodes.get(node_id)
        if node is not None:
            node.counts["lost"] += samples
            message = (
                f"{node.counts['lost']} samples are missing from this node's history because the hub was "
                "overloaded; a node with an agent sends them again"
            )
            self.note(node_id, "lost", Problem(code="samples_lost", message=message))

    def note_duplicates(self) -> None:
        """Show on nodes that have a GPU in common that they have. Every few seconds."""
        found = self._duplicates.problems
        for node_id in [*(node.id for node in self._nodes.values() if "twin" in node.notes), *found]:
            self.note(node_id, "twin", found.get(node_id))

    def set_notices(self, notices: tuple[FleetNotice, ...]) -> None:
        """Say what concerns the whole herd."""
        self._publication.notices = notices

    def set_bookings(self, bookings: Iterable[DeviceBookingFacts]) -> None:
        """Know all bookings that run, are to come or have ended within three days, instead of those known before."""
        self._booked.take(bookings)
        self._public.persons = {
            holder: self.names.person(users) or holder for holder, users in self._booked.users_of.items()
        }

    def public_holder(self, holder: str, users: Collection[str]) -> str:
        """Give what the holder of a booking is called in public: as its processes are, where it is one person."""
        return self._public.pseudonyms.of(self.names.person(users) or holder)

    def booking_uses(self) -> dict[tuple[int, DeviceRef], BookingUse]:
        """Tell what happens on every device of every booking that runs, as of the last tick."""
        return self._booked.uses()

    def gpu_count(self, node_id: str) -> int | None:
        """Tell how many whole GPUs a node shows; none before its first report."""
        node = self._nodes.get(node_id)
        if node is None or node.facts is None:
            return None
        return sum(device.kind == "gpu" for device in node.facts.devices)

    def received_at(self, node_id: str) -> float | None:
        """Tell when a live sample of a node came last, by the monotonic clock."""
        node = self._nodes.get(node_id)
        received = -math.inf if node is None else float(self._node_rows.received[node.row])
        return received if math.isfinite(received) else None

    # -- ingest ------------------------------------------------------------------------------------------------

    def open_run(
        self, node_id: str, hello: Hello, *, asked_at: float | None = None, is_report: bool = False
    ) -> Run:
        """Start or resume a run of frames; ``Refused`` for a node that is not known.

        ``asked_at``: when the hub sent what the hello came after, by the monotonic clock.

        ``is_report``: its time is not that of the moment, but of a report that may have lain somewhere.
        """
        node = self._nodes.get(node_id)
        if node is None:
            raise Refused("unknown_node", f"node {node_id} is not enrolled here")
        node.note_run(hello.boot_id, node.runs.get(hello.boot_id, -1))
        if node.note_dropped(hello.boot_id, hello.dropped_frames):
            self.note(node_id, "dropped", dropped_problem(node.dropped_by_agent))
        run = Run(node, hello, self, self.clock)
        if self.intake is not None and not is_report:
            self.intake.greet(run, hello.time, asked_at)
        return run

    def refuse(self, node_id: str, error: Refused) -> None:
        """Count against a node a frame that came before any run was open."""
        node = self._nodes.get(node_id)
        if node is not None:
            node.refuse(error, self.clock.wall())

    def reading_delay_seconds(self) -> float:
        """Return how much later than usual the samples of most nodes are read."""
        delay_seconds = self._lateness.seconds(self.clock.wall(), self.clock.monotonic())
        if self.intake is not None:
            self.intake.reading_delay_seconds = delay_seconds
        return delay_seconds

    def past_pause_seconds(self) -> float:
        """Tell how long to wait before more history is read from a node."""
        return 0.0 if self.intake is None else self.intake.pause_seconds

    def accept_report(self, node_id: str, report: Report, interval_seconds: float | None = None) -> None:
        """Take a whole report that came without numbers; ``Refused`` if its parts do not line up.

        One whose time is not after that of the report before is the same again: it proves nothing about now.

        ``interval_seconds``: when the next one is to be expected; by default before the node counts as offline.
        """
        problem = report.mismatch()
        if problem is not None:
            refusal = Refused("report_misaligned", problem)
            self.refuse(node_id, refusal)
            raise refusal
        node = self._nodes.get(node_id)
        if node is not None and not node.advance(report.sample.time):
            if report.sample.time == node.sample_time:  # taken, in case that it says something else after all
                received = float(self._node_rows.received[node.row])
                self._take_report(node_id, report, interval_seconds)
                self._node_rows.received[node.row] = received
            self.note(node_id, "contact", _repeated_problem(self.clock.wall()))
            return
        self._take_report(node_id, report, interval_seconds)

    def _take_report(self, node_id: str, report: Report, interval_seconds: float | None) -> None:
        if interval_seconds is None:
            interval_seconds = self.settings.offline_after_seconds / self.settings.stale_after_intervals
        reports = self._reports.get(node_id)
        if reports is None or reports.interval_seconds != interval_seconds:
            hello = Hello(
                boot_id=f"reports-{self.clock.wall():.3f}",
                layout=LAYOUT,
                time=report.sample.time,
                interval_seconds=interval_seconds,
            )
            run = self.open_run(node_id, hello, is_report=True)
            run.sample_age_seconds = interval_seconds
            reports = self._reports[node_id] = ReportRun(run)
        reports.take(report)

    def take_past(self, run: Run, frame: SampleFrame | None = None) -> None:
        """Keep the number of a frame that changes nothing live, and for history the sample if it is one."""
        self._unsaved[run.node_id] = run.node
        if self.intake is not None:
            self.intake.take_past(run, frame)

    def take_live(self, run: Run, frame: SampleFrame, message: bytes) -> None:
        """Copy a sample of right now into the rows."""
        node = run.node
        # By identity: a node may send other content under a revision it has used before.
        if node.facts is not run.facts or node.table is not run.table or node.run is not run:
            self._adopt(node, run, frame.problems)
        if node.is_native:
            self._rows.write(node.start, frame.devices)
            self._node_rows.write(node.row, frame.host)
        else:
            copy_columns(
                self._rows.values,
                node.start,
                node.reported_count,
                frame.devices,
                node.layout.devices,
                LAYOUT.devices,
            )
            copy_columns(self._node_rows.values, node.row, 1, frame.host, node.layout.host, LAYOUT.host)
        node.disks, node.processes, node.uses = frame.disks, frame.processes, frame.uses
        self._rows.is_impossible[node.start : node.start + node.count] = False
        if node.has_explained_memory:
            explain_memory(self._rows, node)
        if "contact" in node.notes:
            self.note(node.id, "contact", None)
        if frame.problems != node.raw_problems:
            self._set_problems(node, frame.problems)
        node.sample_message = message
        node.sample_time = frame.time
        wall = self.clock.wall()
        node.received_wall = wall
        monotonic = self.clock.monotonic()
        self._node_rows.received[node.row] = monotonic
        self._node_rows.skew[node.row] = frame.time - wall
        self._unsaved[node.id] = node
        if self.intake is not None:
            self.intake.take_live(run, frame, wall, monotonic)
        if run.next_interval_seconds is not None:
            run.interval_seconds, run.next_interval_seconds = run.next_interval_seconds, None
            self.interval_changed(run)
        if frame.interval_seconds != run.slow_interval_seconds:
            run.slow_interval_seconds = frame.interval_seconds
            self.interval_changed(run)

    def interval_changed(self, run: Run) -> None:
        """Use another interval from now on to judge whether a node's reports are overdue."""
        if run.node.run is run:
            self._node_rows.interval[run.node.row] = max(
                run.interval_seconds, run.slow_interval_seconds or 0.0
            )

    def _adopt(self, node: Node, run: Run, problems: tuple[Problem, ...]) -> None:
        """Make a run's facts and table the node's, with the problems of the sample that comes with them."""
        if run.facts is None:
            raise AssertionError("a sample is accepted only after its facts")
        self._lay_out(node, run.facts)
        node.table, node.owners = run.table, run.owners
        self._booked.table_changed(node.id)
        self._owned.take(node)
        node.layout = run.hello.layout
        node.is_native = node.layout.devices == LAYOUT.devices and node.layout.host == LAYOUT.host
        node.hello_message, node.facts_message, node.table_message = (
            run.hello_message,
            run.facts_message,
            run.table_message,
        )
        node.run = run
        self.interval_changed(run)
        count_uses(self._rows, node)
        self._set_problems(node, problems)

    def _lay_out(self, node: Node, facts: NodeFacts) -> None:
        """Give a node's devices their rows: those of the facts, then those that are missing."""
        missing = self.memory.see(node.id, facts.devices, node.expected_gpus, self.clock.wall())
        uuids = [device.uuid for device in facts.devices] + [device.facts.uuid for device in missing]
        if uuids != [device.uuid for device in node.devices]:
            kept = kept_states(node, self._rows, self.clock)
            past = self._recent.take_devices(node)
            values = {
                device.uuid: self._rows.values[row].copy()
                for row, device in enumerate(node.devices, node.start)
            }
            self._rows.release(node.start, node.count)
            node.facts, node.missing, node.count = facts, missing, len(uuids)
            node.start = self._rows.allocate(node.count)
            for row, uuid in enumerate(uuids[: len(facts.devices)], node.start):
                if uuid in values:
                    self._rows.values[row] = values[uuid]
            restore_states(node, self._rows, self.clock, kept)
            self._recent.put_devices(node, past)
            self._booked.devices_moved(node.id)
            self._publication.devices_moved(node)
        node.facts, node.missing = facts, missing
        self._duplicates.take(node)
        describe_devices(self._rows, node, self.names, self._models)

    def _energy(self, node: Node) -> dict[str, float]:
        """Give the energy counters of a node's devices, as far as they are known."""
        counted = self._rows.values[node.start : node.start + node.count, ENERGY_COLUMN].tolist()
        return {
            device.uuid: joules
            for device, joules in zip(node.devices, counted, strict=True)
            if not math.isnan(joules)
        }

    # -- what is remembered ------------------------------------------------------------------------------------

    def expect_gpus(self, node_id: str, count: int | None) -> None:
        """Know how many GPUs a node has according to a list; None: no list says."""
        node = self._nodes.get(node_id)
        if node is not None and node.expected_gpus != count:
            node.expected_gpus = count
            self._lay_out_again(node)

    def plan_acknowledge(self, node_id: str, uuid: str) -> MemoryChanges | None:
        """Give what changes if the faults and ECC errors of a GPU are taken as known; None if it is not known."""
        node = self._nodes.get(node_id)
        row = None if node is None else node.row_of(uuid)
        if node is None or row is None or node.facts is None:
            return None
        ecc = self._rows.values[row, ECC_COLUMN]
        return self.memory.plan_acknowledge(
            node_id,
            uuid,
            node.facts.host,
            int(ecc) if 0 <= ecc <= 2**53 else 0,  # not NaN; the next tick drops what is impossible
            self._energy(node).get(uuid),
            self.clock.wall(),
        )

    def settle(self, node_id: str, changes: MemoryChanges) -> None:
        """Take over what an admin has said of a node's GPUs, once it is written."""
        self.memory.settle(changes)
        node = self._nodes.get(node_id)
        if node is not None:
            self._lay_out_again(node)

    def _lay_out_again(self, node: Node) -> None:
        if node.facts is not None:
            self._lay_out(node, node.facts)
            count_uses(self._rows, node)
            if node.has_explained_memory:
                explain_memory(self._rows, node)
            self._set_problems(node, node.raw_problems)

    def _set_problems(self, node: Node, problems: tuple[Problem, ...]) -> None:
        node.raw_problems = problems
        node.problems = clean_problems(problems)
        if node.facts is not None:
            now = self.clock.wall()
            told = self.memory.problems(node.id, node.facts.host, node.problems, self._energy(node), now)
            missing = missing_problem(node.missing, now)
            if missing is not None and not any(p.is_fault and p.device_uuid is None for p in told):
                told = (missing, *told)  # unless the node itself says why there are none to be read
            node.problems = told
            for row, device in enumerate(node.devices, node.start):
                self._rows.ecc_baseline[row] = self.memory.ecc_baseline(node.id, device.uuid)
        flag_problems(self._rows, self._node_rows, node)
        self._publication.inventory_changed(node)

    # -- the tick ----------------------------------------------------------------------------------------------

    def tick(self) -> None:
        """Judge the whole herd once: bounds, node states, availability."""
        now = self.clock.monotonic()
        self.tick_number += 1
        nodes, wall = self._nodes.values(), self.clock.wall()
        lies = drop_lies(self._rows.values, "devices", self._rows.node, nodes, wall)
        self._note_resets()
        self._rows.is_impossible |= lies[:, DECIDING_COLUMNS].any(axis=1)
        host_rows = np.arange(self._node_rows.capacity, dtype=np.int32)
        drop_lies(self._node_rows.values, "host", host_rows, nodes, wall)
        assess_nodes(self._node_rows, now, self.settings)
        self._note_moves()
        before = self._rows.state.copy()
        self._booked.begin_tick(wall)
        self._duplicates.mark()
        assess_devices(self._rows, self._node_rows, now, self.settings)
        self._booked.end_tick()
        self._recent.record()
        if self.intake is not None:
            self.intake.judge(self._nodes, self._rows.state)
            self.intake.take_unsampled(unsampled_groups(self._rows, self._models))
        moved = np.unique(self._rows.node[np.flatnonzero(before != self._rows.state)])
        if moved.size:
            by_row = {node.row: node for node in self._nodes.values()}
            for row in moved.tolist():
                node = by_row.get(row)
                if node is not None:
                    node.states_at = -np.inf
                    self._unsaved[node.id] = node
        self.judged_at = wall

    def _note_resets(self) -> None:
        """Clear the faults of GPUs that have been reset: their energy counters start again."""
        for node in self._nodes.values():
            if self.memory.has_faults(node.id) and self.memory.note_energy(node.id, self._energy(node)):
                self._set_problems(node, node.raw_problems)

    def _note_moves(self) -> None:
        """Stop missing the GPUs that have turned up in another node."""
        for node in self._nodes.values():
            moved = [one.facts.uuid for one in node.missing if self._duplicates.is_reported(one.facts.uuid)]
            for uuid in moved:
                self.memory.move(node.id, uuid)
            if moved:
                self._lay_out_again(node)

    # -- what is kept ------------------------------------------------------------------------------------------

    def take_unsaved(self) -> list[LastReport]:
        """Give the nodes that changed since the last call, to be kept; parts that did not are the same objects."""
        batch = [last_report(node, self._rows, self.clock) for node in self._unsaved.values()]
        self._unsaved.clear()
        return batch

    def restore(self, kept: LastReport) -> None:
        """Bring back a node's last state after a restart, as old as it is; unreadable parts leave it never seen."""
        node = self._nodes.get(kept.node_id)
        if node is None:
            return
        node.runs = dict(kept.runs)
        if kept.facts is None or kept.sample is None:
            return
        intake, self.intake = self.intake, None  # it was remembered when it came
        try:
            play_back(kept, lambda hello: Run(node, hello, self, self.clock))
        except Refused as error:
            log.warning(
                "cannot read the saved state of node %s (%s); it is shown as never reported", node.id, error
            )
            node.runs = dict(kept.runs)
            return
        finally:
            self.intake = intake
        node.runs = dict(kept.runs)
        node.counts.clear()
        age = age_seconds(kept, self.clock, self.settings.offline_after_seconds)
        self._node_rows.received[node.row] = self.clock.monotonic() - age
        self._node_rows.skew[node.row] += age  # it was counted from now, not from when the sample came
        node.received_wall = kept.received_at
        restore_states(node, self._rows, self.clock, kept.states)
        self._unsaved.pop(node.id, None)

    def raise_runs(self, node_id: str, runs: Mapping[str, int]) -> None:
        """Take frames up to these numbers as taken: history has them, although they may not have been acknowledged."""
        node = self._nodes.get(node_id)
        if node is not None:
            for boot_id, seq in runs.items():
                if seq > node.runs.get(boot_id, -1):
                    node.note_run(boot_id, seq)

    def take_again(self, node_id: str, runs: Mapping[str, int]) -> bool:
        """Count a node's frames above these numbers as not taken; false if the node cannot send them again.

        For its next runs: those that are open go on as they are and have to be ended.
        """
        node = self._nodes.get(node_id)
        if node is None or node_id in self._reports:
            return False
        node.runs = {boot_id: runs.get(boot_id, -1) for boot_id in node.runs}
        return True

    def recall(self, node_id: str, states: Mapping[str, KeptState]) -> bool:
        """Say since when devices, by uuid, have been what they are; false as long as the node has not reported."""
        node = self._nodes.get(node_id)
        if node is None or not node.devices:
            return False
        restore_states(node, self._rows, self.clock, dict(states))
        return True

    # -- faces -------------------------------------------------------------------------------------------------

    @property
    def shows_command_lines(self) -> bool:
        """Whether everyone who sees names sees command lines."""
        return self._privacy.command_lines == "members"

    def face(self, privacy: PrivacyClass) -> Face:
        """Give what a privacy class is shown; ``Refused`` for one that sees totals alone."""
        if privacy == "public":
            return self._public
        if privacy == "names":
            return self._names_face
        if privacy == "member":
            return AdminFace() if self.shows_command_lines else MemberFace()
        if privacy == "admin":
            return AdminFace()
        raise Refused("totals_only", "you can only see totals")

    def own_commands(self, users: Collection[str]) -> OwnCommands:
        """Give the processes of these users, as nodes call them, with their command lines."""
        return self._owned.commands(users)

    def take_changed_users(self) -> set[str]:
        """Give the users, as nodes call them, of whom a process came or went since the last call."""
        return self._owned.take_changed()

    def snapshot(self) -> FleetChange:
        """Everything as of the last published tick, for a viewer who starts to look."""
        return self._publication.snapshot(self.tick_number)

    def change(self) -> FleetChange:
        """What changed since the last published tick; to be called right after ``tick`` while anyone looks."""
        return self._publication.change(self.tick_number)

    def glancer(self, privacy: PrivacyClass) -> Glancer:
        """Give who puts glances together for a class."""
        glancer = self._glancers.get(privacy)
        if glancer is None:
            glancer = self._glancers[privacy] = Glancer(
                self.face(privacy),
                self._rows,
                self._node_rows,
                self._nodes,
                self._booked,
                self._composer,
                self._publication.inventory,
                self.clock,
            )
        return glancer

    def glance(self, privacy: PrivacyClass) -> Glance:
        """What is free and who has what, as columns, as a class sees it."""
        glancer = self.glancer(privacy)
        return Glance(
            time=self.judged_at,
            tick=self.tick_number,
            notices=glancer.face.notices(self._publication.notices),
            totals=self.totals(),
            **glancer.parts()._asdict(),
        )

    def view(self) -> FleetView:
        """Everything as nested objects."""
        return FleetView(
            time=self.judged_at,
            tick=self.tick_number,
            notices=self._publication.notices,
            totals=self.totals(),
            nodes=tuple(self.nodes()),
        )

    def frame(self, face: Face, nodes: tuple[NodeView, ...]) -> FleetView:
        """What a class is shown of the herd as a whole, around nodes as it sees them."""
        return FleetView(
            time=self.judged_at,
            tick=self.tick_number,
            notices=face.notices(self._publication.notices),
            totals=self.totals(),
            nodes=nodes,
        )

    def nodes(self) -> Iterable[NodeView]:
        """Every node, in the order in which people see them."""
        return (self._composer.node(node) for node in self._composer.sorted_nodes())

    def node_ids(self) -> tuple[str, ...]:
        """The ids of all nodes, in the same order."""
        return tuple(node.id for node in self._composer.sorted_nodes())

    def ids_called(self, name: str, *, with_hosts: bool) -> list[str]:
        """The ids of all nodes that go by a name: an id, a shown name or, ``with_hosts``, a host name.

        Where nobody has the whole name, those who have what stands before its first dot.
        """
        names = {
            node.id: [
                each.casefold()
                for each in (node.id, self._composer.name(node), node.hostname if with_hosts else None)
                if each
            ]
            for node in self._nodes.values()
        }
        wanted = name.casefold()
        if found := [node_id for node_id, own in names.items() if wanted in own]:
            return found
        first = wanted.partition(".")[0]
        return [
            node_id for node_id, own in names.items() if first in (each.partition(".")[0] for each in own)
        ]

    def node(self, node_id: str) -> NodeView | None:
        """One node, or none if it is not known."""
        node = self._nodes.get(node_id)
        return None if node is None else self._composer.node(node)

    def recent(self, node_id: str, uuids: Collection[str] | None = None) -> RecentView | None:
        """The last minutes of a node and its devices, or of those named; none if the node is not known."""
        node = self._nodes.get(node_id)
        return None if node is None else self._recent.node(node, uuids)

    def devices(self) -> tuple[DeviceView, ...]:
        """Every device of every node."""
        return tuple(device for node in self.nodes() for device in node.devices)

    def listing(self) -> tuple[ListedDevice, ...]:
        """Every device to choose from; far cheaper than ``devices``."""
        return list_devices(self._composer, self._rows)

    def users(self, face: Face | None = None) -> tuple[UserView, ...]:
        """Who holds what, the largest holders first."""
        return self._composer.users((face or AdminFace()).user)

    def totals(self) -> Totals:
        """The herd in numbers."""
        return self._composer.totals()

    def node_states(self) -> dict[str, tuple[str, NodeState, float]]:
        """Return each node's shown name, state and seconds since its last report, as of the last tick."""
        now = self.clock.monotonic()
        return {
            node.id: (
                self._composer.name(node),
                NODE_STATES[self._node_rows.state[node.row]],
                now - float(self._node_rows.received[node.row]),
            )
            for node in self._nodes.values()
        }

    def node_health(self) -> tuple[NodeHealth, ...]:
        """How each node's frames fared."""
        return tuple(node.health() for node in self._nodes.values())


def _repeated_problem(now: float) -> Problem:
    return Problem(
        code="report_repeated",
        message="the same report arrives repeatedly: its time does not advance; check the program that sends it",
        since=now,
    )
