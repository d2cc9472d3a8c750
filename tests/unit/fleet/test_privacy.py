"""Nothing that a privacy class may not see is anywhere in what it is sent."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from gpuherd.api.command_reads import CommandReads
from gpuherd.api.herd_views import HerdViews
from gpuherd.fleet.changes import FleetChange
from gpuherd.fleet.editions import CountsEditor, FaceEditor, Message
from gpuherd.fleet.fleet import Fleet
from gpuherd.fleet.names import Names
from gpuherd.fleet.privacy import Face
from gpuherd.fleet.pseudonyms import Pseudonyms
from gpuherd.fleet.settings import DisplaySettings, PrivacySettings
from gpuherd.fleet.views import FleetNotice
from gpuherd.model.bookings import DeviceBookingFacts, DeviceRef
from gpuherd.model.devices import DeviceFacts, DeviceSample
from gpuherd.model.hosts import Address, Disk, HostFacts
from gpuherd.model.people import Account, PrivacyClass, Viewer
from gpuherd.model.processes import Process, ProcessUse
from gpuherd.model.reports import NodeFacts, Problem
from support.herd import WORKING, ManualClock, Speaker, gpu

ALICE = Account(id="a1", name="alice", display_name="Alice", role="member", linux_names=("zqalice",))


def encoded(fleet: Fleet, change: FleetChange, privacy: PrivacyClass) -> bytes:
    editor = CountsEditor() if privacy == "counts" else FaceEditor(fleet.face(privacy))
    edition = editor.edition(Message(change))
    return edition.head + edition.numbers


def everything(fleet: Fleet, clock: ManualClock, viewer: Viewer) -> bytes:
    """All that a viewer can read, in the stream and by the API."""
    assert viewer.privacy is not None
    parts = [encoded(fleet, fleet.snapshot(), viewer.privacy)]
    if viewer.privacy != "counts":
        views = HerdViews(fleet, CommandReads(clock, is_public=False))
        nodes = [views.node(viewer, node.id) for node in fleet.nodes()]
        parts += map(msgspec.json.encode, (views.herd(viewer), views.users(viewer), nodes))
        parts.append(asyncio.run(views.glance(viewer)).plain)
    clock.advance(1)
    fleet.tick()
    parts.append(encoded(fleet, fleet.change(), viewer.privacy))
    return b"\n".join(parts)


class Filling:
    """Fills every text of a struct with a word of its own, to see where it comes out."""

    def __init__(self) -> None:
        self._numbers = itertools.count(100)
        self.place_of: dict[str, str] = {}

    def word(self, place: str) -> str:
        word = f"zq{next(self._numbers)}x"
        self.place_of[word] = place
        return word

    def fill(self, kind: type[Any], /, **given: Any) -> Any:
        texts: dict[str, Any] = {}
        for field in msgspec.structs.fields(kind):
            if field.name not in given and "str" in str(field.type) and "Literal" not in str(field.type):
                word = self.word(f"{kind.__name__}.{field.name}")
                texts[field.name] = (word,) if "tuple" in str(field.type) else word
        return kind(**{**texts, **given})

    def places(self, content: bytes) -> set[str]:
        return {place for word, place in self.place_of.items() if word.encode() in content}


@pytest.fixture
def filling() -> Filling:
    return Filling()


@pytest.fixture
def full_fleet(clock: ManualClock, filling: Filling) -> Fleet:
    """A herd of one node of which every text is known by where it was put."""
    fleet = Fleet(clock=clock, pseudonyms=Pseudonyms(b"s" * 32))
    node_id = filling.word("node.id")
    fleet.add_node(node_id, filling.word("node.name"))
    node = Speaker(fleet, clock, node_id)
    whole = filling.fill(
        DeviceFacts, index=0, kind="gpu", parent_uuid=None, profile=None, is_partitioned=True
    )
    piece = filling.fill(DeviceFacts, index=1, kind="slice", parent_uuid=whole.uuid)
    host = filling.fill(
        HostFacts, addresses=(filling.fill(Address),), disks=(filling.fill(Disk, total_bytes=1),)
    )
    node.facts = NodeFacts(host=host, devices=(whole, piece))
    node.revision += 1
    node.send_facts()
    program, rest = filling.word("the program"), filling.word("the rest of the command line")
    process = filling.fill(Process, pid=7, command=f"/opt/{filling.word('the folder')}/{program} --x={rest}")
    node.run_table((process,), (ProcessUse(process=0, device=1),))
    problems = (
        filling.fill(Problem, device_uuid=whole.uuid, is_fault=True),
        filling.fill(Problem, code="xid", device_uuid=None),
    )
    node.sample(WORKING, WORKING, problems=problems)
    fleet.note(node_id, "contact", filling.fill(Problem, device_uuid=None))
    fleet.set_notices((filling.fill(FleetNotice, since=None),))
    fleet.set_bookings(
        [
            DeviceBookingFacts(
                device=DeviceRef(node_id, piece.uuid),
                booking_id=1,
                holder=filling.word("booking.holder"),
                title=filling.word("booking.title"),
                starts_at=0,
                ends_at=2**37,
                linux_names=frozenset([filling.word("booking.linux_names")]),
            )
        ]
    )
    fleet.tick()
    return fleet


PUBLIC = {
    "node.id",
    "node.name",
    "DeviceFacts.uuid",
    "DeviceFacts.name",
    "DeviceFacts.vendor",
    "DeviceFacts.profile",
    "DeviceFacts.compute_capability",
}
MEMBER = PUBLIC | {
    "DeviceFacts.pci_bus_id",
    "DeviceFacts.serial",
    "DeviceFacts.health_checks",
    "HostFacts.hostname",
    "HostFacts.boot_id",
    "HostFacts.os",
    "HostFacts.kernel",
    "HostFacts.architecture",
    "HostFacts.cpu_model",
    "HostFacts.driver_version",
    "HostFacts.cuda_version",
    "HostFacts.agent_version",
    "Address.interface",
    "Address.ip",
    "Disk.mount",
    "Process.user",
    "Process.container",
    "Process.job",
    "the program",
    "Problem.code",
    "Problem.columns",
    "Problem.message",
    "FleetNotice.code",
    "FleetNotice.message",
    "booking.holder",
    "booking.title",
}


@pytest.mark.parametrize(
    ("privacy", "shown"),
    [
        ("counts", {"DeviceFacts.name", "DeviceFacts.profile"}),  # the model, in the totals
        ("public", PUBLIC),
        ("names", PUBLIC | {"Process.user", "booking.holder"}),
        ("member", MEMBER),
        ("admin", MEMBER | {"the folder", "the rest of the command line"}),
    ],
)
def test_every_class_is_shown_these_texts_and_no_others(
    full_fleet: Fleet, clock: ManualClock, filling: Filling, privacy: PrivacyClass, shown: set[str]
) -> None:
    assert filling.places(everything(full_fleet, clock, Viewer(privacy=privacy))) == shown


GLANCED = {
    "node.id",
    "node.name",
    "DeviceFacts.uuid",
    "DeviceFacts.name",
    "DeviceFacts.vendor",
    "DeviceFacts.profile",
}
GLANCED_BY_MEMBERS = GLANCED | {
    "HostFacts.hostname",
    "Process.user",
    "Problem.code",
    "Problem.columns",
    "Problem.message",
    "FleetNotice.code",
    "FleetNotice.message",
    "booking.holder",
    "booking.title",
}


@pytest.mark.parametrize(
    ("privacy", "shown"),
    [
        ("public", GLANCED),
        ("names", GLANCED | {"Process.user", "booking.holder"}),
        ("member", GLANCED_BY_MEMBERS),
        ("admin", GLANCED_BY_MEMBERS),
    ],
)
def test_a_glance_holds_these_texts_and_no_others(
    full_fleet: Fleet, filling: Filling, privacy: PrivacyClass, shown: set[str]
) -> None:
    assert filling.places(msgspec.json.encode(full_fleet.glance(privacy))) == shown


def test_no_command_line_is_read_at_a_glance(full_fleet: Fleet, clock: ManualClock) -> None:
    reads = CommandReads(clock, is_public=False)
    admin = Viewer(privacy="admin", account=structs.replace(ALICE, role="admin"))
    noted: list[Any] = []

    async def append(deeds: list[Any]) -> None:
        noted.extend(deeds)

    async def story() -> None:
        views = HerdViews(full_fleet, reads)
        await views.glance(admin)
        await reads.write(append)
        assert noted == []
        views.herd(admin)
        await reads.write(append)
        assert [deed.subject for deed in noted] == ["herd"]

    asyncio.run(story())


def test_command_lines_may_be_shown_to_all_who_see_names(
    full_fleet: Fleet, clock: ManualClock, filling: Filling
) -> None:
    full_fleet._privacy = PrivacySettings(command_lines="members")
    seen = filling.places(everything(full_fleet, clock, Viewer(privacy="member")))
    assert "the rest of the command line" in seen
    assert filling.places(everything(full_fleet, clock, Viewer(privacy="public"))) == PUBLIC
    without_login = filling.places(everything(full_fleet, clock, Viewer(privacy="names")))
    assert without_login == PUBLIC | {"Process.user", "booking.holder"}


# -- random herds --------------------------------------------------------------------------------------------------


def words(kind: str) -> st.SearchStrategy[str]:
    """Words of a kind are never words of another, nor of anything that is shown."""
    return st.integers(0, 10**9).map(lambda number: f"zq{kind}{number:010d}")


class RandomProcess(NamedTuple):
    user: str | None
    program: str
    arguments: tuple[str, ...]
    container: str | None
    job: str | None


processes = st.builds(
    RandomProcess,
    st.sampled_from(["zqalice", "zqbob", None]) | words("user"),
    st.sampled_from(["python", "/usr/bin/python3.12", "./a.out", "ray::", "sshd:"]),
    st.lists(words("argument"), max_size=3).map(tuple),
    st.none() | words("container"),
    st.none() | words("job"),
)
herds = st.lists(
    st.tuples(words("message"), st.lists(processes, max_size=4), words("title"), words("holder")),
    min_size=1,
    max_size=4,
)


def _secrets(herd: list[Any]) -> Iterator[tuple[PrivacyClass, str | None, str]]:
    """Give what is hidden: from which class on it is shown, whose it is, and the text."""
    for message, running, title, holder in herd:
        yield from (("member", None, text) for text in (message, title))
        yield "names", None, holder
        for process in running:
            if process.user:
                yield "names", None, process.user
            yield from (("member", None, text) for text in (process.container, process.job) if text)
            yield from (("admin", process.user, argument) for argument in process.arguments)


@given(herds, st.booleans())
@pytest.mark.promise("command-lines-for-owners")
def test_no_private_text_reaches_a_lesser_class(herd: list[Any], has_aliases: bool) -> None:
    clock = ManualClock()
    names = Names(DisplaySettings(users={"zqalice": "zqalice the first"} if has_aliases else {}))
    fleet = Fleet(clock=clock, names=names)
    bookings = []
    for number, (message, running, title, holder) in enumerate(herd):
        node_id = f"n{number}"
        fleet.add_node(node_id, node_id)
        node = Speaker(fleet, clock, node_id)
        table = tuple(
            Process(
                pid=place,
                user=process.user,
                command=" ".join([process.program, *process.arguments]),
                container=process.container,
                job=process.job,
            )
            for place, process in enumerate(running)
        )
        node.describe(
            gpu(number),
            processes=table,
            uses=tuple(ProcessUse(process=p, device=0) for p in range(len(table))),
        )
        problem = Problem(code=message, message=message, device_uuid=f"GPU-{number}", is_fault=True)
        node.sample(DeviceSample(utilization_gpu=0.5), problems=(problem,))
        fleet.note(node_id, "contact", structs.replace(problem, device_uuid=None))
        bookings.append(
            DeviceBookingFacts(
                device=DeviceRef(node_id, f"GPU-{number}"),
                booking_id=number,
                holder=holder,
                title=title,
                starts_at=0,
                ends_at=2**37,
                linux_names=frozenset({"zqalice"}),
            )
        )
    fleet.set_bookings(bookings)
    fleet.tick()
    rank = ("counts", "public", "names", "member", "admin")
    secrets = [*_secrets(herd)]
    alices = {text for _, owner, text in secrets if owner == "zqalice"}
    for viewer in (
        Viewer(privacy="counts"),
        Viewer(privacy="public"),
        Viewer(privacy="names"),
        Viewer(privacy="member"),
        Viewer(privacy="member", account=ALICE),
        Viewer(privacy="admin"),
    ):
        assert viewer.privacy is not None
        content = everything(fleet, clock, viewer)
        for shown_to, _, text in secrets:
            if rank.index(viewer.privacy) < rank.index(shown_to):
                is_own = viewer.account is ALICE and text in alices
                assert is_own == (text.encode() in content)
            elif shown_to == "admin":
                assert text.encode() in content


def test_the_edition_of_admins_is_the_whole_message(full_fleet: Fleet) -> None:
    change = full_fleet.snapshot()
    assert msgspec.json.decode(encoded(full_fleet, change, "admin")) == msgspec.json.decode(
        msgspec.json.encode(change)
    )


@pytest.mark.parametrize("privacy", ["counts", "public", "names", "member", "admin"])
def test_every_edition_is_a_message_of_the_stream(full_fleet: Fleet, privacy: PrivacyClass) -> None:
    change = full_fleet.snapshot()
    edition = msgspec.json.decode(encoded(full_fleet, change, privacy), type=FleetChange)
    assert (edition.tick, edition.totals) == (change.tick, change.totals)
    if privacy == "counts":
        assert (edition.nodes, edition.devices.row, edition.uses.node) == ([], [], [])
    else:
        assert (edition.devices, edition.hosts, edition.uses) == (change.devices, change.hosts, change.uses)


def test_numbers_are_encoded_once_for_all_classes(full_fleet: Fleet) -> None:
    message = Message(full_fleet.snapshot())
    faces: list[Face] = [full_fleet.face(privacy) for privacy in ("public", "names", "member", "admin")]
    assert len({id(FaceEditor(face).edition(message).numbers) for face in faces}) == 1


def test_one_person_has_one_pseudonym_everywhere(clock: ManualClock) -> None:
    fleet = Fleet(clock=clock, names=Names(DisplaySettings(users={"ada2": "ada"})))
    for node_id, user in (("n1", "ada"), ("n2", "ada2"), ("n3", None)):
        fleet.add_node(node_id, node_id)
        node = Speaker(fleet, clock, node_id)
        node.describe(gpu(0), processes=(Process(pid=1, user=user),), uses=(ProcessUse(process=0, device=0),))
        node.sample(WORKING)
    fleet.set_bookings(
        [
            DeviceBookingFacts(
                device=DeviceRef("n1", "GPU-0"),
                booking_id=1,
                holder="Ada Lovelace",
                title="",
                starts_at=0,
                ends_at=2**37,
                linux_names=frozenset({"ada", "ada2"}),
            )
        ]
    )
    fleet.tick()
    views = HerdViews(fleet, CommandReads(clock, is_public=False))
    anyone = Viewer(privacy="public")
    nodes = {node.id: node.devices[0] for node in views.herd(anyone).nodes}
    pseudonym = nodes["n1"].processes[0].user
    assert pseudonym == nodes["n2"].processes[0].user == nodes["n1"].bookings[0].holder
    assert pseudonym == fleet.public_holder("Ada Lovelace", {"ada2"})
    assert pseudonym != fleet.public_holder("a group", {"ada", "bob"})
    assert nodes["n3"].processes[0].user is None
    assert {view.user: len(view.devices) for view in views.users(anyone)} == {pseudonym: 2, None: 1}
