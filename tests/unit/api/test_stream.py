"""The live stream by privacy class: who gets which edition, what is one's own, and when a stream ends."""

from __future__ import annotations

import asyncio
import json
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from gpuherd.api.errors import HttpError
from gpuherd.api.stream import LiveStream
from gpuherd.fleet.fleet import Fleet
from gpuherd.model.people import Account, PrivacyClass, Viewer
from gpuherd.model.processes import Process, ProcessUse
from support.herd import IDLE, WORKING, ManualClock, Speaker, gpu
from support.running import PATIENCE_SECONDS
from support.tally import Tally


def account(name: str, role: str = "member") -> Account:
    return Account(id=f"id-{name}", name=name, display_name=name, role=role, linux_names=(name,))  # type: ignore[arg-type]


class Watched:
    """One stream, as a browser sees it."""

    def __init__(self, stream: LiveStream, viewer: Viewer, *, is_zipped: bool = False) -> None:
        self.bodies: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._unzip = zlib.decompressobj(31) if is_zipped else None
        self._left = asyncio.Event()
        headers = [(b"accept-encoding", b"gzip")] if is_zipped else []
        scope = {"type": "http", "method": "GET", "path": "/api/v1/stream", "headers": headers}
        self.task = asyncio.create_task(stream.serve(scope, self._receive, self._send, viewer))

    async def _receive(self) -> dict[str, Any]:
        await self._left.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Any) -> None:
        if message["type"] == "http.response.body":
            await self.bodies.put(message["body"] if message["more_body"] else None)

    async def events(self) -> list[tuple[str, dict[str, Any]]] | None:
        """Give the events of the next body; none if the stream has ended."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            body = await self.bodies.get()
        if body is None:
            return None
        text = (self._unzip.decompress(body) if self._unzip else body).decode()
        found = []
        for block in text.split("\n\n")[:-1]:
            fields = dict(line.split(": ", 1) for line in block.splitlines())
            found.append((fields["event"], json.loads(fields["data"])))
        return found

    async def leave(self) -> None:
        self._left.set()
        await self.task


class House:
    """A fleet of one node and its stream."""

    def __init__(self, max_viewers: int = 100, max_viewers_per_account: int = 50) -> None:
        self.clock = ManualClock()
        self.fleet = Fleet(clock=self.clock)
        self.watching: list[str] = []
        self.stream = LiveStream(
            self.fleet,
            max_viewers=max_viewers,
            max_viewers_per_account=max_viewers_per_account,
            wall=self.clock.wall,
            note_watching=lambda viewer: self.watching.append(viewer.account.name if viewer.account else "?"),
        )
        self.fleet.add_node("n1", "n1")
        self.node = Speaker(self.fleet, self.clock, "n1")
        self.run("ada", "bob")

    def run(self, *users: str) -> None:
        self.node.describe(
            gpu(0),
            processes=tuple(
                Process(pid=pid, user=user, command=f"python secret-of-{user}.py")
                for pid, user in enumerate(users)
            ),
            uses=tuple(ProcessUse(process=place, device=0) for place in range(len(users))),
        )
        self.node.sample(WORKING)
        self.fleet.tick()

    def tick(self) -> None:
        self.clock.advance(1)
        self.node.sample(IDLE)
        self.fleet.tick()
        self.stream.publish()


@asynccontextmanager
async def watched(house: House, *viewers: Viewer, is_zipped: bool = False) -> AsyncIterator[list[Watched]]:
    streams = [Watched(house.stream, viewer, is_zipped=is_zipped) for viewer in viewers]
    try:
        yield streams
    finally:
        await asyncio.gather(*(stream.leave() for stream in streams))
        assert house.stream.health().open == 0
        assert (house.stream._editors, house.stream._own) == ({}, {})


def story(tell: Callable[[House], Any]) -> None:
    async def run() -> None:
        await tell(House())

    asyncio.run(run())


@pytest.mark.parametrize("is_zipped", [False, True])
def test_every_class_gets_its_edition(is_zipped: bool) -> None:
    classes: tuple[PrivacyClass, ...] = ("counts", "public", "member", "admin")

    async def tell(house: House) -> None:
        viewers = [Viewer(privacy=privacy) for privacy in classes]
        async with watched(house, *viewers, is_zipped=is_zipped) as streams:
            snapshots = []
            for stream in streams:
                events = await stream.events()
                assert events is not None
                ((name, snapshot),) = events
                assert name == "snapshot"
                snapshots.append(snapshot)
            commands = [[p.get("command") for n in s["nodes"] for p in n["processes"]] for s in snapshots]
            assert commands == [
                [],
                [None, None],
                ["python", "python"],
                ["python secret-of-ada.py", "python secret-of-bob.py"],
            ]
            assert [len(s["devices"]["row"]) for s in snapshots] == [0, 1, 1, 1]
            assert {s["totals"]["devices"]["busy"] for s in snapshots} == {1}
            for _ in range(3):
                house.tick()
                changes = [await stream.events() for stream in streams]
                assert [[name for name, _ in events or ()] for events in changes] == [["change"]] * 4

    story(tell)


def test_people_get_their_own_command_lines_when_they_change() -> None:
    async def tell(house: House) -> None:
        ada = Viewer(privacy="member", account=account("ada"))
        async with watched(house, ada, ada, Viewer(privacy="member", account=account("eve"))) as streams:
            first, second, eve = streams
            for stream in (first, second):
                events = await stream.events()
                assert events is not None
                assert [name for name, _ in events] == ["snapshot", "own"]
                assert events[1][1] == {
                    "node_id": ["n1"],
                    "pid": [0],
                    "started_at": [None],
                    "command": ["python secret-of-ada.py"],
                }
            events = await eve.events()
            assert events is not None
            assert events[1] == ("own", {"node_id": [], "pid": [], "started_at": [], "command": []})
            assert len(house.stream._own) == 2, "one for each account, however many tabs"
            house.tick()
            assert [name for name, _ in await first.events() or ()] == ["change"]
            house.run("bob", "ada", "ada")
            house.tick()
            events = await first.events()
            assert events is not None
            assert [name for name, _ in events] == ["change", "own"]
            assert events[1][1]["pid"] == [1, 2]
            await eve.events()
            assert [name for name, _ in await eve.events() or ()] == ["change"]

    story(tell)


def test_who_missed_a_tick_gets_a_snapshot_and_its_own_again() -> None:
    async def tell(house: House) -> None:
        async with watched(house, Viewer(privacy="member", account=account("ada"))) as (stream,):
            await stream.events()
            house.tick()
            house.tick()  # before it could send the first
            assert [name for name, _ in await stream.events() or ()] == ["snapshot", "own"]

    story(tell)


def test_a_stream_ends_at_once_when_its_viewer_may_look_no_more() -> None:
    async def tell(house: House) -> None:
        ada = Viewer(privacy="member", account=account("ada"), key="s1")
        bob = Viewer(privacy="member", account=account("bob"), key="s2")
        async with watched(house, ada, bob) as (of_ada, of_bob):
            await of_ada.events()
            await of_bob.events()
            for _ in range(2):  # told twice before it could do anything
                assert house.stream.drop(lambda viewer: viewer.key == "s1") == 1
            assert await of_ada.events() is None
            await of_ada.task
            house.tick()
            assert await of_bob.events()
            assert house.stream.health().open == 1

    story(tell)


def test_a_stream_that_someone_else_cancels_is_cancelled() -> None:
    async def tell(house: House) -> None:
        async with watched(house, Viewer(privacy="member"), Viewer(privacy="public")) as (stream, _):
            await stream.events()
            house.stream.drop(lambda viewer: viewer.privacy == "member")
            stream.task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await stream.task
            stream.task = asyncio.create_task(asyncio.sleep(0))

    story(tell)


def test_a_stream_ends_with_its_session() -> None:
    async def tell(house: House) -> None:
        viewer = Viewer(privacy="member", account=account("ada"), expires_at=house.clock.wall() + 1.5)
        async with watched(house, viewer) as (stream,):
            await stream.events()
            house.tick()
            assert await stream.events()
            house.tick()
            assert await stream.events() is None

    story(tell)


def test_who_watches_is_noted_while_it_does() -> None:
    async def tell(house: House) -> None:
        root = Viewer(privacy="admin", account=account("root", "admin"))
        async with watched(house, root, Viewer(privacy="public")) as streams:
            for stream in streams:
                await stream.events()
            assert house.watching == ["root"], "also if it looks only once"
            house.tick()
        house.tick()
        assert house.watching == ["root", "root"]

    story(tell)


def test_nobody_sees_nothing() -> None:
    async def tell(house: House) -> None:
        stream = Watched(house.stream, Viewer(privacy=None))
        with pytest.raises(HttpError) as refused:
            await stream.task
        assert refused.value.status == 401
        assert stream.bodies.empty()

    story(tell)


@pytest.mark.attack
@pytest.mark.promise("views-per-account")
def test_one_account_cannot_take_all_live_views(tally: Tally) -> None:
    async def tell() -> None:
        house = House(max_viewers=100, max_viewers_per_account=10)
        greedy = account("greedy")
        tokens = [
            Viewer(privacy="member", account=greedy, via="token", key=f"token-{number}")
            for number in range(4)
        ]
        browser = Viewer(privacy="member", account=greedy, via="session", key="session")
        opened: list[Watched] = []
        refused = []
        for viewer in [*tokens[:1] * 25, *[browser] * 3, *tokens[1:] * 25]:
            stream = Watched(house.stream, viewer)
            await asyncio.sleep(0)
            if stream.task.done():
                with pytest.raises(HttpError) as error:
                    await stream.task
                refused.append(str(error.value))
            else:
                opened.append(stream)
        tally.add("one account opens live views", tries=103, held=len(refused), figure=f"{len(opened)} open")
        assert len(opened) == 10
        assert len([text for text in refused if "this token has 5 live streams" in text]) == 20
        assert len([text for text in refused if "your account has 10 live streams" in text]) == 73
        async with watched(
            house, Viewer(privacy="member", account=account("ada"), via="session"), Viewer(privacy="admin")
        ) as others:
            for other in others:
                assert await other.events()
            for stream in opened:
                await stream.leave()

    asyncio.run(tell())


@pytest.mark.attack
@pytest.mark.promise("views-for-admins")
def test_however_many_look_an_admin_can_look(tally: Tally) -> None:
    async def tell() -> None:
        house = House(max_viewers=40)
        crowd = [
            Viewer(privacy="member", account=account(f"user-{n}"), via="session", key=str(n))
            for n in range(38)
        ]
        one_more = Viewer(privacy="member", account=account("ada"), via="session", key="ada")
        admin = Viewer(privacy="admin", account=account("root", "admin"), via="session", key="root")
        async with watched(house, *crowd) as streams:
            for stream in streams:
                assert await stream.events()
            with pytest.raises(HttpError, match="too many live streams are open"):
                await Watched(house.stream, one_more).task
            looking = [Watched(house.stream, admin) for _ in range(2)]
            seen = [await stream.events() for stream in looking]
            tally.add("admins look while all others do", tries=2, held=sum(map(bool, seen)))
            assert all(seen)
            with pytest.raises(HttpError, match="too many live streams are open"):
                await Watched(house.stream, admin).task
            for stream in looking:
                await stream.leave()

    asyncio.run(tell())


@pytest.mark.attack
@pytest.mark.promise("views-per-address")
def test_one_address_cannot_take_all_live_views_of_strangers(tally: Tally) -> None:
    async def tell() -> None:
        house = House(max_viewers=320)
        greedy = [Viewer(privacy="public", peer=f"2001:db8::{number:x}") for number in range(60)]
        opened = [Watched(house.stream, viewer) for viewer in greedy]
        await asyncio.sleep(0)
        refused = [stream for stream in opened if stream.task.done()]
        for stream in refused:
            with pytest.raises(HttpError, match="your address has 20 live streams"):
                await stream.task
        tally.add("one address opens live views without a login", tries=60, held=len(refused))
        assert len(refused) == 40
        elsewhere = ("2001:db8:0:1::1", "192.0.2.1")
        async with watched(
            house,
            *(Viewer(privacy="public", peer=address) for address in elsewhere),
            Viewer(privacy="member", account=account("ada"), via="session", peer="2001:db8::1"),
        ) as others:
            for other in others:
                assert await other.events()
            for stream in opened:
                if stream not in refused:
                    await stream.leave()

    asyncio.run(tell())


@pytest.mark.parametrize(("max_viewers", "strangers"), [(1, 1), (2, 1), (5, 3), (6, 3)])
def test_strangers_leave_half_of_the_room_to_those_who_are_known(max_viewers: int, strangers: int) -> None:
    async def tell() -> None:
        house = House(max_viewers)
        stranger = Viewer(privacy="public")
        known = (
            Viewer(privacy="member", account=account("ada"), via="session"),
            Viewer(privacy="admin"),  # a program on the hub's own machine
        )
        async with watched(house, *[stranger] * strangers) as streams:
            for stream in streams:
                assert await stream.events()
            with pytest.raises(HttpError, match="too many live streams"):
                await Watched(house.stream, stranger).task
            rest = [known[place % 2] for place in range(max_viewers - strangers)]
            others = [Watched(house.stream, viewer) for viewer in rest]
            for other in others:
                assert await other.events()
            with pytest.raises(HttpError, match="too many live streams"):
                await Watched(house.stream, known[0]).task
            for other in others:
                await other.leave()
            if others:
                with pytest.raises(HttpError, match="too many live streams"):
                    await Watched(house.stream, stranger).task

    asyncio.run(tell())
