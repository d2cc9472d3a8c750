"""The holes in a node's counted time, written down so that they can be filled after a restart."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

import msgspec
import numpy as np
from msgspec import Struct

from gpuherd.history.batch import SessionKey
from gpuherd.history.usage.register import Register
from gpuherd.history.usage.seats import Place, Seats
from gpuherd.history.usage.timeline import NOBODY, Front, Shown, Timeline

__all__ = [
    "HoleNote",
    "aged_holes",
    "forgotten_holes",
    "read_notes",
    "restored_front",
    "restored_holes",
    "stays_in",
    "write_notes",
]

Stay = tuple[str, str, str | None, str | None, str | None, float]
"""A SessionKey without its node."""


class ShownNote(Struct, frozen=True, array_like=True):
    """What the sample at the end of a hole showed."""

    seats: tuple[Place, ...]
    stays: tuple[Stay | None, ...]
    uuids: tuple[str, ...]
    device: bytes
    source: bytes
    weight: bytes
    memory: bytes
    values: bytes


class HoleNote(Struct, frozen=True, array_like=True):
    """A front that is not the node's last."""

    at: float
    end: float
    present: tuple[Stay, ...]
    after: ShownNote | None


Notes = dict[str, tuple[HoleNote, ...]]
_decoder = msgspec.msgpack.Decoder(Notes)


def write_notes(timelines: Iterable[Timeline], register: Register) -> bytes:
    """Write down the holes of these nodes; nothing for no nodes."""
    notes = {
        timeline.node_id: tuple(_hole(front, register) for front in timeline.fronts[:-1])
        for timeline in timelines
    }
    return msgspec.msgpack.encode(notes) if notes else b""


def read_notes(notes: bytes) -> Mapping[str, tuple[HoleNote, ...]]:
    """Read what ``write_notes`` wrote: of each node in it, all its holes."""
    return _decoder.decode(notes) if notes else {}


def stays_in(node_id: str, holes: Iterable[HoleNote]) -> set[SessionKey]:
    """List the stays that these holes refer to."""
    stays = [stay for hole in holes for stay in hole.present]
    stays += [
        stay for hole in holes if hole.after is not None for stay in hole.after.stays if stay is not None
    ]
    return {SessionKey(node_id, *stay) for stay in stays}


def forgotten_holes(holes: Iterable[HoleNote], users: Collection[str]) -> tuple[HoleNote, ...]:
    """Make what these users had beside holes an unknown user's."""

    def stay_of(stay: Stay) -> Stay:
        uuid, type_, user, _, _, opened_at = stay
        return (uuid, type_, None, None, None, opened_at) if user in users else stay

    def after_of(after: ShownNote) -> ShownNote:
        seats = (
            Place(place.uuid, None, None, None) if place.user in users else place for place in after.seats
        )
        stays = (None if stay is None else stay_of(stay) for stay in after.stays)
        return msgspec.structs.replace(after, seats=tuple(seats), stays=tuple(stays))

    return tuple(
        HoleNote(
            hole.at,
            hole.end,
            tuple(dict.fromkeys(map(stay_of, hole.present))),
            None if hole.after is None else after_of(hole.after),
        )
        for hole in holes
    )


def aged_holes(holes: Iterable[HoleNote], since: float) -> tuple[HoleNote, ...]:
    """Forget who was there before a moment; that nothing was counted then is still known."""
    return tuple(
        HoleNote(
            hole.at,
            hole.end,
            hole.present if hole.at >= since else (),
            hole.after if hole.end >= since else None,
        )
        for hole in holes
    )


def restored_holes(
    node_id: str, holes: Iterable[HoleNote], number_of: Callable[[SessionKey], int]
) -> list[Front]:
    """Make fronts of notes."""
    fronts = []
    for hole in holes:
        front = restored_front(
            node_id, hole.at, [SessionKey(node_id, *stay) for stay in hole.present], number_of
        )
        front.end = hole.end
        if hole.after is not None:
            numbers = [
                NOBODY if stay is None else number_of(SessionKey(node_id, *stay)) for stay in hole.after.stays
            ]
            front.after = Shown(
                seats=_bare_seats(node_id, hole.after.seats, hole.after),
                numbers=np.array(numbers, np.int64).tobytes(),
                memory=hole.after.memory,
                values=hole.after.values,
            )
        fronts.append(front)
    return fronts


def restored_front(
    node_id: str, at: float, present: Iterable[SessionKey], number_of: Callable[[SessionKey], int]
) -> Front:
    """Make a front at which these stays were seen. Its energy counters are not known any more."""
    stays = sorted(present, key=number_of)
    front = Front(at, _bare_seats(node_id, tuple(Place(stay.uuid, *stay[3:6]) for stay in stays), None))
    front.numbers = np.array([number_of(stay) for stay in stays], np.int64).tobytes()
    front.taken = b"\x01" * len(stays)
    return front


def _hole(front: Front, register: Register) -> HoleNote:
    after = front.after
    return HoleNote(
        at=front.at,
        end=front.end,
        present=tuple(_stay(register, number) for _, number in front.present()),
        after=None
        if after is None
        else ShownNote(
            seats=after.seats.places,
            stays=tuple(
                None if number == NOBODY else _stay(register, number)
                for number in np.frombuffer(after.numbers, np.int64).tolist()
            ),
            uuids=after.seats.uuids,
            device=after.seats.device,
            source=after.seats.source,
            weight=after.seats.weight,
            memory=after.memory,
            values=after.values,
        ),
    )


def _stay(register: Register, number: int) -> Stay:
    return register.key(number)[1:]


def _bare_seats(node_id: str, places: tuple[Place, ...], note: ShownNote | None) -> Seats:
    """Make seats that no further sample refers to."""
    return Seats(
        node_id=node_id,
        uuids=() if note is None else note.uuids,
        types=(),
        places=places,
        processes=(),
        commands=(),
        device=b"" if note is None else note.device,
        is_ghost=b"",
        use_seat=b"",
        source=b"" if note is None else note.source,
        weight=b"" if note is None else note.weight,
        memory_total=b"",
    )
