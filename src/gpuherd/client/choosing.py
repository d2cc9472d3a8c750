"""Which devices to take: only such as are surely free, the smallest that will do, packed tightly.

Pure: a herd and its bookings go in, devices come out, always the same ones for the same person. Among equals, people
get different ones, so that two who choose at the same moment seldom meet; who must be sure books, or runs under a lock.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Container, Iterable, Sequence
from typing import NamedTuple

from msgspec import Struct

from gpuherd.client.booked_times import BookedTimes
from gpuherd.client.herd_views import Gpu, Herd, Node
from gpuherd.client.wanted import GIB, Wish, fits
from gpuherd.model.text import clean

__all__ = [
    "MAX_AGE_SECONDS",
    "Candidate",
    "Search",
    "Sorted",
    "by_node",
    "choose",
    "environment_name",
    "is_usable_id",
    "most_together",
    "pool_of",
]

MAX_AGE_SECONDS = 60.0
"""What was heard of a node longer ago does not count as known."""
_UUID = re.compile(r"(?:GPU|MIG)-[0-9A-Za-z][0-9A-Za-z./-]{0,90}", re.ASCII)
"""What drivers take, and a shell too: the ids come from the nodes, and end up in command lines."""
_ENVIRONMENT_NAMES = {"amd": "ROCR_VISIBLE_DEVICES"}
_USED_STATES = frozenset({"busy", "held", "booked"})
_UNKNOWN_SIZE = 2**62


class Candidate(NamedTuple):
    """A device that can be had, and its node."""

    node: Node
    gpu: Gpu
    is_own: bool = False
    """It is under a booking of one's own right now."""

    @property
    def place(self) -> str:
        """Where it is, such as gpu07/3, fit to be shown."""
        return clean(self.node.place(self.gpu), 80)


class Sorted(NamedTuple):
    """All devices of a kind: those that can be had, and why the others cannot, by reason."""

    able: tuple[Candidate, ...]
    others: dict[str, tuple[Candidate, ...]]

    @property
    def known(self) -> tuple[Candidate, ...]:
        """All devices of the kind, in whatever state."""
        return (*self.able, *(one for of_reason in self.others.values() for one in of_reason))

    def told(self) -> str:
        """Say why the others cannot be had, such as "3 busy, 1 booked within the time"."""
        counts = Counter({reason: len(of_reason) for reason, of_reason in self.others.items()})
        return ", ".join(f"{count} {reason}" for reason, count in counts.most_common())


class Search(Struct, frozen=True, kw_only=True):
    """What is looked for, where, and what is to be kept clear of."""

    wish: Wish = Wish()
    node_ids: frozenset[str] | None = None
    """Only on these nodes; none: on all."""
    seconds: int = 4 * 3600
    """For so long from now on nothing may be booked by others."""
    is_for_booking: bool = False
    """What is chosen is to be booked: not what is under a booking of one's own already, nor kept out of booking."""
    max_age_seconds: float = MAX_AGE_SECONDS

    def sort(
        self, herd: Herd, booked: BookedTimes, now: float, *, avoid: Container[str] = frozenset()
    ) -> Sorted:
        """Sort the devices of a kind at ``now``, by the hub's clock; ``avoid`` are UUIDs that are spoken for."""
        able: list[Candidate] = []
        others: dict[str, list[Candidate]] = {}
        for node, gpu in herd.units():
            if (self.node_ids is not None and node.id not in self.node_ids) or not fits(gpu, self.wish):
                continue
            own = any(span.is_own for span in booked.between(gpu, now, now + 1))
            reason = self._obstacle(node, gpu, booked, now, now - herd.time, is_own=own)
            if reason is None and gpu.uuid in avoid:
                reason = "just taken by someone here"
            candidate = Candidate(node, gpu, own)
            if reason is None:
                able.append(candidate)
            else:
                others.setdefault(reason, []).append(candidate)
        return Sorted(tuple(able), {reason: tuple(found) for reason, found in others.items()})

    def _obstacle(
        self, node: Node, gpu: Gpu, booked: BookedTimes, now: float, herd_age: float, *, is_own: bool
    ) -> str | None:
        """Say why a device cannot be had; none if it can. *booked* is free for whoever has booked it."""
        if gpu.state != "free" and not (gpu.state == "booked" and is_own):
            return clean(gpu.state, 20)  # it is told to people, and a hub may call it whatever it likes
        if node.state != "live" or node.age_seconds is None:
            return "on nodes without fresh data"
        if abs(herd_age) + node.age_seconds > self.max_age_seconds:
            return f"without a report for {self.max_age_seconds:.0f} s"
        if not is_usable_id(gpu.uuid):
            return "without a UUID"
        for span in booked.between(gpu, now, now + self.seconds):
            if not span.is_own:
                return "booked within the time"
            if self.is_for_booking:
                return "already booked by you"
        return "not bookable" if self.is_for_booking and booked.is_quiet(gpu) else None


def is_usable_id(uuid: str) -> bool:
    """Tell whether programs can be given a device by this: a placeholder for one that is not told is none."""
    return _UUID.fullmatch(uuid) is not None


def environment_name(gpu: Gpu) -> str:
    """Give the variable by which programs are told to use a device."""
    return _ENVIRONMENT_NAMES.get(gpu.facts.vendor, "CUDA_VISIBLE_DEVICES")


def choose(able: Sequence[Candidate], wish: Wish, *, person: str) -> tuple[Candidate, ...] | None:
    """Choose exactly as many as are wanted, by node; none if that cannot be.

    Those under one's own bookings come first. Then the smallest, with regard to memory; then nodes that are in use, so
    that empty ones stay whole; then as few nodes as can be, and of these the one with the fewest left over. Devices for
    which programs need different variables are never mixed.
    """
    found = []
    for name in sorted({environment_name(candidate.gpu) for candidate in able}):
        pool = [candidate for candidate in able if environment_name(candidate.gpu) == name]
        own = [candidate for candidate in pool if candidate.is_own]
        chosen = _smallest(own, wish, person) or _smallest(pool, wish, person)
        if chosen is not None:
            found.append(chosen)
    return min(found, key=lambda chosen: max(map(_size, chosen)), default=None)


def _smallest(pool: Sequence[Candidate], wish: Wish, person: str) -> tuple[Candidate, ...] | None:
    for limit in sorted({_size(candidate) for candidate in pool}):
        small = [candidate for candidate in pool if _size(candidate) <= limit]
        if len(small) < wish.count:
            continue
        used = [candidate for candidate in small if _is_used(candidate.node)]
        for part in (used, small):
            chosen = _packed(_by_node(part, person), wish, person)
            if chosen is not None:
                return chosen
    return None


def _packed(nodes: Sequence[Sequence[Candidate]], wish: Wish, person: str) -> tuple[Candidate, ...] | None:
    def rank(devices: Sequence[Candidate]) -> tuple[int, int, bytes]:
        own = sum(candidate.is_own for candidate in devices)
        return -own, len(devices), _lot(person, devices[0].node.id)

    enough = [devices for devices in nodes if len(devices) >= wish.count]
    if enough:
        return tuple(min(enough, key=rank)[: wish.count])
    if wish.same_node or sum(map(len, nodes)) < wish.count:
        return None
    chosen: list[Candidate] = []
    left = sorted(nodes, key=lambda devices: (rank(devices)[0], -len(devices), rank(devices)[2]))
    while (missing := wish.count - len(chosen)) > 0:
        last = [devices for devices in left if len(devices) >= missing]
        devices = min(last, key=rank) if last else left[0]
        left.remove(devices)
        chosen += devices[:missing]
    return tuple(chosen)


def _by_node(devices: Iterable[Candidate], person: str) -> list[list[Candidate]]:
    """Sort devices by node and, there, by what is to be taken first."""
    nodes: dict[str, list[Candidate]] = {}
    for candidate in devices:
        nodes.setdefault(candidate.node.id, []).append(candidate)
    for found in nodes.values():
        found.sort(key=lambda one: (not one.is_own, _size(one), _breaks_up(one), _lot(person, one.gpu.uuid)))
    return list(nodes.values())


def _size(candidate: Candidate) -> int:
    """Give the memory in whole GiB, which drivers tell a little differently; one's own always come first."""
    total = candidate.gpu.facts.memory_total_bytes
    return -1 if candidate.is_own else _UNKNOWN_SIZE if total is None else round(total / GIB)


def _is_used(node: Node) -> bool:
    return any(gpu.state in _USED_STATES for gpu in node.units)


def _breaks_up(candidate: Candidate) -> bool:
    """Tell whether it is a slice of a GPU of which nothing is in use yet."""
    parent = candidate.gpu.facts.parent_uuid
    siblings = [gpu for gpu in candidate.node.units if gpu.facts.parent_uuid == parent]
    return parent is not None and not any(gpu.state in _USED_STATES for gpu in siblings)


def _lot(person: str, thing: str) -> bytes:
    return hashlib.blake2b(f"{person}\0{thing}".encode("utf-8", "replace"), digest_size=8).digest()


def most_together(candidates: Collection[Candidate], wish: Wish) -> int:
    """Tell how many of these could be had together: all of one make, and on one node if they must be."""
    pools = Counter(pool_of(candidate, wish) for candidate in candidates)
    return max(pools.values(), default=0)


def pool_of(candidate: Candidate, wish: Wish) -> tuple[str, str]:
    """Name what a device can be had together with: by make, and by node if all must be on one."""
    return environment_name(candidate.gpu), candidate.node.id if wish.same_node else ""


def by_node(chosen: Collection[Candidate]) -> dict[str, list[Candidate]]:
    """Sort chosen devices by the id of their node, in the driver's order."""
    nodes: dict[str, list[Candidate]] = {}
    for candidate in chosen:
        nodes.setdefault(candidate.node.id, []).append(candidate)
    for found in nodes.values():
        found.sort(key=lambda one: (one.gpu.facts.parent_uuid or "", one.gpu.facts.index, one.gpu.uuid))
    return nodes
