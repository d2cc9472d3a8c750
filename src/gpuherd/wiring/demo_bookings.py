"""Bookings for the demo: people who keep to them, who let them lapse, and who work on what others have booked."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence

from gpuherd.collect.scenario import SimulatedGpu
from gpuherd.model.bookings import BookingState, DeviceRef
from gpuherd.model.people import Actor
from gpuherd.records.bookings import BookingDraft, BookingRecords
from gpuherd.wiring.demo_herd import DemoNode
from gpuherd.wiring.demo_stays import Stay, demo_stays

__all__ = ["book_demo_herd"]

HOUR = 3600
DAY = 24 * HOUR
QUARTER = HOUR // 4
PAST_DAYS = 7
MAX_NODES = 40
"""Nodes with bookings: each booking is a transaction, and nobody looks through more."""
TITLES = (
    "pretraining run 7",
    "ablation 3",
    "camera-ready figures",
    "fine-tuning, rank 64",
    "nightly evaluation",
    "course, exercise 5",
    "reading group demo",
    "",
)


class _Calendar:
    """Draws the bookings of one node from a seed; none overlap."""

    def __init__(self, node: DemoNode, node_id: str, now: int, days: float) -> None:
        self._chance = random.Random(node.name)  # noqa: S311 - repeatable, not secret
        self._stays: dict[int, list[Stay]] = {}
        for stay in demo_stays(node, now=now, days=days):
            self._stays.setdefault(stay.device, []).append(stay)
        self._node = node
        self._node_id = node_id
        self._now = now - now % QUARTER

    def drafts(self) -> Iterator[BookingDraft]:
        gpus = self._node.scenario.gpus
        if self._chance.random() < 0.2:
            yield from self._row([ref for gpu in gpus for ref in self._refs(gpu)], 0, _user_of(gpus[0]))
            return
        place = 0
        while place < len(gpus):
            some = gpus[place : place + self._chance.choice((1, 1, 2, 4))]
            if self._chance.random() < 0.7:
                yield from self._row(
                    [ref for gpu in some for ref in self._refs(gpu)], place, _user_of(some[0])
                )
            place += len(some)

    def _refs(self, gpu: SimulatedGpu) -> list[DeviceRef]:
        uuids = [part.uuid for part in gpu.mig_slices] or [gpu.uuid]
        return [DeviceRef(self._node_id, uuid) for uuid in uuids]

    def _row(self, devices: list[DeviceRef], place: int, worker: str | None) -> Iterator[BookingDraft]:
        """Give bookings of the same devices, one after the other, from a week ago to two weeks ahead."""
        time = self._now - PAST_DAYS * DAY + self._chance.randrange(0, 12) * HOUR
        while time < self._now + 12 * DAY:
            ends = time + self._chance.choice((4, 8, 12, 24, 48, 96)) * HOUR
            runs_now = time <= self._now < ends
            # Most who work on a device, now or then, are those who booked it.
            present = worker if runs_now else self._present(place, time, ends)
            keeps_to_it = present is not None and self._chance.random() < 0.8
            holder = present if keeps_to_it and present else f"user{self._chance.randint(1, 17):02}"
            waits = time > self._now + DAY and self._chance.random() < 0.03
            yield self._draft(devices, holder, time, ends, "pending" if waits else "active")
            time = ends + self._chance.choice((0, 6, 12, 30, 60, 90)) * HOUR

    def _present(self, place: int, starts: int, ends: int) -> str | None:
        """Give who was on a device for the longest part of a time; nobody knows who will be."""
        found = {
            stay.user: min(stay.end, ends) - max(stay.start, starts)
            for stay in self._stays.get(place, ())
            if stay.start < ends and stay.end > starts
        }
        return max(found, key=lambda user: found[user], default=None)

    def _draft(
        self, devices: list[DeviceRef], holder: str, starts: int, ends: int, state: BookingState
    ) -> BookingDraft:
        return BookingDraft(
            title=self._chance.choice(TITLES),
            owner_id=None,
            owner_name=holder,
            devices=tuple(devices),
            starts_at=starts,
            ends_at=ends,
            state=state,
            origin="comments",  # where people are called what they are called on the nodes
        )


def _user_of(gpu: SimulatedGpu) -> str | None:
    return next((process.user for process in gpu.processes if process.user is not None), None)


def book_demo_herd(
    records: BookingRecords,
    herd: Sequence[DemoNode],
    node_ids: Mapping[str, str],
    *,
    now: float,
    days: float = 0.0,
) -> None:
    """Put bookings into empty records; ``node_ids`` by name, ``days`` as those of the herd's past. Blocking."""
    by = Actor(account_id=None, label="demo")
    for node in herd[:MAX_NODES]:
        for draft in _Calendar(node, node_ids[node.name], int(now), days).drafts():
            records.create([draft], now=now, by=by)
