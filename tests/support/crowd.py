"""Nodes that report and people who book through every fault, and what is left of that which a hub acknowledged."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
from msgspec import Struct

from gpuherd.api.open_records import open_hub_records
from gpuherd.api.settings import HubSettings
from gpuherd.auth.enrolment import Enrolment
from gpuherd.auth.tokens import create_token
from gpuherd.model.bookings import Booking
from gpuherd.model.people import Actor
from gpuherd.records.last_reports import LastReports
from support.counting_node import CountingNode, Kept
from support.running import PATIENCE_SECONDS
from support.tally import Tally

__all__ = ["Crowd", "Losses"]

HOUR = 3600
BY = Actor(account_id=None, label="test")


class Wish(Struct):
    """A booking that was asked for, and what of it was acknowledged."""

    starts_at: int
    ends_at: int
    later_end: int | None = None
    """Asked for and perhaps not acknowledged."""
    booking_id: int | None = None


class StubbornBooker:
    """Books any GPU for one hour after the other and makes each booking longer. Repeats every request until it is
    answered, with the same ``Idempotency-Key``, as ``gpuherd book`` does.
    """

    def __init__(self, url: str, name: str, token: str, *, first_start: int) -> None:
        self.name = name
        self.headers = {"Authorization": f"Bearer {token}"}
        self._url = url
        self._first_start = first_start
        self.wishes: dict[str, Wish] = {}
        """By title."""
        self.unanswered = 0
        """Requests that had to be repeated."""
        self.is_finishing = False

    @property
    def acked(self) -> int:
        return sum(wish.booking_id is not None for wish in self.wishes.values())

    async def run(self) -> None:
        """Book until told to finish."""
        async with aiohttp.ClientSession(self._url, headers=self.headers) as session:
            while not self.is_finishing:
                number = len(self.wishes)
                starts_at = self._first_start + number * HOUR
                wish = self.wishes[f"{self.name}-{number}"] = Wish(starts_at, starts_at + HOUR // 2)
                (made,) = await self._insist(
                    session,
                    *("POST", "api/v1/bookings", f"{self.name}-{number}"),
                    any={"count": 1},
                    title=f"{self.name}-{number}",
                    start=_iso(wish.starts_at),
                    end=_iso(wish.ends_at),
                )
                wish.booking_id = int(made["id"])
                wish.later_end = wish.starts_at + HOUR
                await self._insist(
                    session,
                    *("PATCH", f"api/v1/bookings/{wish.booking_id}", f"{self.name}-{number}-longer"),
                    end=_iso(wish.later_end),
                )
                wish.ends_at, wish.later_end = wish.later_end, None

    async def _insist(
        self, session: aiohttp.ClientSession, method: str, path: str, key: str, **body: Any
    ) -> Any:
        while True:
            with contextlib.suppress(aiohttp.ClientError, ConnectionError):
                async with session.request(
                    method, path, json=body, headers={"Idempotency-Key": key}
                ) as response:
                    answer = await response.json()
                    if response.status < 300:
                        return answer
                    # The hub or its records are away, or the nodes are not yet back.
                    assert response.status == 503 or answer["error"]["code"] == "too_few_devices", answer
            self.unanswered += 1
            await asyncio.sleep(0.02)


def _iso(moment: int) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat()


class Losses:
    """What was acknowledged and is lost, there twice or at a wrong time. Each thing counts once, however often it is
    seen; a try held if nothing came to these after it.
    """

    def __init__(self) -> None:
        self.lost: set[str] = set()
        self.doubled: set[str] = set()
        self.misdated: set[str] = set()
        self.tries = self.held = 0

    @property
    def all(self) -> tuple[set[str], set[str], set[str]]:
        return self.lost, self.doubled, self.misdated

    @contextlib.contextmanager
    def a_try(self) -> Iterator[None]:
        """Count a try by what is found meanwhile."""
        before = sum(map(len, self.all))
        self.tries += 1
        yield
        self.held += sum(map(len, self.all)) == before

    def count_samples(self, name: str, node: CountingNode, acked: int, kept: dict[int, list[float]]) -> None:
        """Compare what history has of a node, as times by number, with what was acknowledged before it was read."""
        self.lost |= {f"{name} {seq}" for seq in range(3, acked + 1) if seq not in kept}
        self.doubled |= {f"{name} {seq}" for seq, times in kept.items() if len(times) > 1}
        self.misdated |= {f"{name} {seq}" for seq in node.misdated(kept)}

    def add_to(self, tally: Tally, what: str, figure: str = "") -> None:
        lost, doubled, misdated = map(len, self.all)
        tally.add(
            what,
            tries=self.tries,
            held=self.held,
            lost=lost,
            doubled=doubled,
            misdated=misdated,
            figure=figure,
        )


class Crowd:
    """Nodes and bookers of one hub. ``shift_seconds``: how far the hub's clock is ahead of the machine's."""

    def __init__(self, url: str, settings: HubSettings, *, now: float, shift_seconds: float) -> None:
        """Enrol the nodes and make the people; ``now``: by the hub's clock. Blocking."""
        self.nodes: dict[str, CountingNode] = {}
        self.bookers: list[StubbornBooker] = []
        with contextlib.closing(open_hub_records(settings)) as records:
            enrolment = Enrolment(records.nodes)
            for name in ("load-0", "load-1", "load-2"):
                credential = enrolment.admit(name, now=now).credential
                self.nodes[name] = CountingNode(
                    url, credential, shift_seconds=shift_seconds, every_seconds=0.02
                )
            for name in ("ada", "bob"):
                account = records.people.create_account(
                    name=name, display_name=name, role="admin", now=now, by=BY
                )
                token = create_token(
                    records.people, account, title="", scopes=["book"], days=1, now=now, by=BY
                )
                first_start = int(now) // HOUR * HOUR + 24 * HOUR
                self.bookers.append(StubbornBooker(url, name, token.secret, first_start=first_start))
        self._running: list[asyncio.Task[None]] = []

    @property
    def members(self) -> list[CountingNode | StubbornBooker]:
        return [*self.nodes.values(), *self.bookers]

    async def start(self) -> None:
        """Let the nodes report and, once the hub knows their GPUs, the people book."""
        self._running += [asyncio.create_task(node.run()) for node in self.nodes.values()]
        await self._reach([(node, 3) for node in self.nodes.values()])
        self._running += [asyncio.create_task(booker.run()) for booker in self.bookers]

    def check(self) -> None:
        """Raise what a member ran into."""
        for task in self._running:
            if task.done():
                task.result()
                raise AssertionError("a member of the crowd has gone")

    async def progress(self, count: int) -> None:
        """Wait until this much more is acknowledged to everyone."""
        await self._reach([(member, member.acked + count) for member in self.members])

    async def progress_of_nodes(self, count: int) -> None:
        """Wait until this many more samples are acknowledged to each node."""
        await self._reach([(node, node.acked + count) for node in self.nodes.values()])

    async def _reach(self, wanted: Sequence[tuple[CountingNode | StubbornBooker, int]]) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while any(member.acked < reached for member, reached in wanted):
                self.check()
                await asyncio.sleep(0.01)

    async def finish(self) -> None:
        """Let everyone end when all is acknowledged."""
        for member in self.members:
            member.is_finishing = True
        async with asyncio.timeout(PATIENCE_SECONDS):
            await asyncio.gather(*self._running)

    async def cancel(self) -> None:
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    def acked(self) -> dict[str, int]:
        """Give the number of the last sample that was acknowledged to each node."""
        return {name: node.acked for name, node in self.nodes.items()}

    def wished(self) -> dict[str, Wish]:
        """Give what every booker has asked for, as of now."""
        return {
            title: Wish(wish.starts_at, wish.ends_at, wish.later_end, wish.booking_id)
            for booker in self.bookers
            for title, wish in booker.wishes.items()
        }

    @property
    def figure(self) -> str:
        frames = sum(max(0, node.acked - 2) for node in self.nodes.values())
        return f"{frames} frames and {sum(booker.acked for booker in self.bookers)} bookings acknowledged"

    def count_samples(self, state_dir: Path, acked: dict[str, int], losses: Losses) -> int:
        """Compare history, and what a hub that starts now would know of each node, with what was acknowledged before.

        A last state may be older than the last acknowledged sample, which the journal has. Gives the number of places
        that are damaged.
        """
        kept = Kept(state_dir / "history")
        for name, node in self.nodes.items():
            losses.count_samples(name, node, acked[name], kept.times.get(name, {}))
        with contextlib.closing(LastReports(state_dir / "state.sqlite")) as store:
            known = {state.node_id: state.runs.get("stubborn", -1) for state in store.load_all()}
        losses.lost |= {
            f"{name} at {seq}"
            for name, seq in acked.items()
            if max(known.get(name, -1), kept.marks.get(name, -1)) < seq
        }
        return kept.damaged + (store.damage is not None)

    def count_bookings(self, bookings: Collection[Booking], wished: dict[str, Wish], losses: Losses) -> None:
        """Compare bookings with what was acknowledged before they were read."""
        there = {booking.id: booking for booking in bookings}
        titles = Counter(booking.title for booking in bookings)
        losses.doubled |= {f"booking {title}" for title, times in titles.items() if times > 1}
        slots = Counter((device, booking.starts_at) for booking in bookings for device in booking.devices)
        losses.doubled |= {f"{device} at {start}" for (device, start), times in slots.items() if times > 1}
        for title, wish in wished.items():
            if wish.booking_id is None:
                continue
            booking = there.get(wish.booking_id)
            if booking is None or booking.title != title or booking.state != "active":
                losses.lost.add(f"booking {title}")
            elif booking.starts_at != wish.starts_at or booking.ends_at not in (wish.ends_at, wish.later_end):
                losses.misdated.add(f"booking {title}")
