"""Batches to bytes and back. Names are written once a file and then called by number.

A file's dictionary grows record by record. What is new in a record is said again in the next one, and all of it now and
then, so that a damaged record takes only its own rows with it; rows whose names are lost all the same are left out and
counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from gpuherd.history.batch import (
    DEVICE_METRICS,
    HOST_METRICS,
    USE_MEASURES,
    Batch,
    Floats,
    FrameMark,
    Numbering,
    Samples,
    SeriesKey,
    SessionKey,
    Unsampled,
    Uses,
)
from gpuherd.history.columns import UNITS, Packed, pack_all, pack_codes, pack_runs, unpack, unpack_codes
from gpuherd.model.columns import COLUMNS

__all__ = ["BatchReader", "BatchWriter", "Record", "read_record"]

K = TypeVar("K")

Entry = str | tuple[str | float | None, ...]
"""A name or the parts of a key: a node or command, a run (2 parts), a series (3), a stay on a device (7)."""

MAX_NUMBERINGS = 8
REPEAT_SHARE = 8
"""All names are said again when this many times their bytes have been written since."""
_UNITS = {column.name: UNITS.get(column.unit, ()) for part in ("devices", "host") for column in COLUMNS[part]}


class _Samples(Struct, frozen=True, array_like=True):
    rows: int
    key_count: int
    keys: Packed
    subject: Packed
    time: Packed
    values: dict[str, Packed]
    state: Packed
    memory_total: Packed
    share: Packed | None = None


class _Uses(Struct, frozen=True, array_like=True):
    rows: int
    key_count: int
    keys: Packed
    commands: dict[int, int]
    session: Packed
    slot: Packed
    first: Packed
    last: Packed
    measures: dict[str, Packed]


class Record(Struct, frozen=True, array_like=True):
    """A batch as it is written."""

    id: int
    """Of this batch alone: one that was written twice, because the disk did not say that it had, is taken once."""
    written_at: float
    names: dict[int, Entry]
    devices: _Samples
    hosts: _Samples
    uses: _Uses
    mark_runs: tuple[int, ...]
    mark_seqs: tuple[int, ...]
    seen_nodes: tuple[int, ...]
    seen_times: tuple[float, ...]
    notes: bytes = b""
    unsampled: tuple[Unsampled, ...] = ()


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Record)


def read_record(payload: bytes | memoryview) -> Record:
    """Read one record's payload; ``msgspec.DecodeError`` if it is none."""
    return _decoder.decode(payload)


class _Known:
    """From the numbers that keys have in this process to those in a file; -1 is none yet."""

    def __init__(self) -> None:
        self._places = np.empty(0, np.int64)

    def places(self, most: int) -> NDArray[np.int64]:
        if most >= len(self._places):
            grown = np.full(max(most + 1, 2 * len(self._places)), -1, np.int64)
            grown[: len(self._places)] = self._places
            self._places = grown
        return self._places


class BatchWriter:
    """Writes the batches of one file."""

    def __init__(self) -> None:
        self._numbers: dict[Entry, int] = {}
        self._told: dict[int, Entry] = {}
        self._new: dict[int, Entry] = {}
        self._stays = _Known()
        self._known: dict[Numbering, _Known] = {}
        self._names_bytes = 0
        self._bytes_since = 0

    def write(self, batch: Batch, batch_id: int) -> bytes:
        """Give a record's payload."""
        self._told, self._new = self._new, {}
        parts = (
            self._samples(batch.devices, DEVICE_METRICS),
            self._samples(batch.hosts, HOST_METRICS),
            self._uses(batch.uses),
            self._all((mark.node_id, mark.boot_id) for mark in batch.marks),
            tuple(mark.seq for mark in batch.marks),
            self._all(node_id for node_id, _ in batch.seen),
            tuple(time for _, time in batch.seen),
            batch.notes,
            batch.unsampled,
        )
        names = {**self._told, **self._new}
        if self._bytes_since > REPEAT_SHARE * self._names_bytes > 0:
            names = {number: entry for entry, number in self._numbers.items()}
            self._bytes_since = 0
        payload = _encoder.encode(Record(batch_id, batch.written_at, names, *parts))
        self._bytes_since += len(payload)
        return payload

    def _number(self, entry: Entry) -> int:
        number = self._numbers.get(entry)
        if number is None:
            number = self._numbers[entry] = len(self._numbers)
            self._new[number] = entry
            self._names_bytes += 8 + (len(entry) if isinstance(entry, str) else sum(map(_size, entry)))
        return number

    def _all(self, entries: Iterable[Entry]) -> tuple[int, ...]:
        get, number = self._numbers.get, self._number
        return tuple(number(entry) if (known := get(entry)) is None else known for entry in entries)

    def _by_number(
        self, keys: Sequence[Entry], numbers: NDArray[np.int64] | None, known: _Known
    ) -> NDArray[np.int64]:
        """Give the dictionary's numbers of keys. There may be tens of thousands: known ones are not looked up."""
        if numbers is None or len(numbers) == 0:
            return np.array(self._all(keys), np.int64)
        places = known.places(int(numbers.max()))
        for place in np.flatnonzero(places[numbers] < 0).tolist():
            places[numbers[place]] = self._number(keys[place])
        return places[numbers]

    def _series(self, samples: Samples) -> NDArray[np.int64]:
        if samples.numbering is None:
            return np.array(self._all(samples.keys), np.int64)
        known = self._known.get(samples.numbering)
        if known is None:
            if len(self._known) >= MAX_NUMBERINGS:
                self._known.clear()
            known = self._known[samples.numbering] = _Known()
        return self._by_number(samples.keys, samples.numbers, known)

    def _samples(self, samples: Samples, metrics: tuple[str, ...]) -> _Samples:
        return _Samples(
            rows=len(samples),
            key_count=len(samples.keys),
            keys=pack_codes(self._series(samples)),
            subject=pack_codes(samples.subject),
            time=pack_runs(samples.time),
            values=_pack_all(samples.values, metrics),
            state=pack_codes(samples.state),
            memory_total=pack_runs(samples.memory_total),
            share=None if samples.share is None else pack_runs(samples.share),
        )

    def _uses(self, uses: Uses) -> _Uses:
        return _Uses(
            rows=len(uses),
            key_count=len(uses.keys),
            keys=pack_codes(self._by_number(uses.keys, uses.numbers, self._stays)),
            commands={
                place: self._number(command)
                for place, command in enumerate(uses.commands)
                if command is not None
            },
            session=pack_codes(uses.session),
            slot=pack_runs(uses.slot.astype(np.float64)),
            first=pack_runs(uses.first),
            last=pack_runs(uses.last),
            measures=_pack_all(uses.measures, USE_MEASURES),
        )


def _size(part: str | float | None) -> int:
    return len(part) + 2 if isinstance(part, str) else 9


def _pack_all(values: Floats, names: tuple[str, ...]) -> dict[str, Packed]:
    if len(values) == 0:
        return {}
    packed = pack_all(np.ascontiguousarray(values.T), [_UNITS.get(name, ()) for name in names])
    return dict(zip(names, packed, strict=True))


@dataclass
class BatchReader:
    """Reads the batches of one file, given all names that its readable records tell."""

    names: dict[int, Entry]
    lost_names: int = 0
    """Names that were needed and are only in damaged records: what they stand for is left out."""
    _made: dict[int, Any] = field(default_factory=dict)

    def read(self, record: Record) -> Batch:
        """Give the batch; ``ValueError`` if its parts do not fit together."""
        return Batch(
            written_at=record.written_at,
            devices=self._samples(record.devices, DEVICE_METRICS),
            hosts=self._samples(record.hosts, HOST_METRICS),
            uses=self._uses(record.uses),
            marks=tuple(
                FrameMark(run[0], run[1], seq)
                for number, seq in zip(record.mark_runs, record.mark_seqs, strict=True)
                if (run := self._parts(number, 2)) is not None
            ),
            seen=tuple(
                (node_id, time)
                for number, time in zip(record.seen_nodes, record.seen_times, strict=True)
                if isinstance(node_id := self.names.get(number), str)
            ),
            notes=record.notes,
            unsampled=record.unsampled,
        )

    def _parts(self, number: int, length: int) -> tuple[Any, ...] | None:
        entry = self.names.get(number)
        if isinstance(entry, tuple) and len(entry) == length:
            return entry
        self.lost_names += 1
        return None

    def _keys(
        self, packed: _Samples | _Uses, length: int, make: Callable[..., K]
    ) -> tuple[tuple[K, ...], NDArray[np.int32]]:
        """Give the keys that are known, and of all that were written the place among them, -1 for the lost ones."""
        keys: list[K] = []
        places = np.full(packed.key_count, -1, np.int32)
        for position, number in enumerate(unpack_codes(packed.keys, packed.key_count).tolist()):
            key = self._made.get(number)
            if key is None:
                parts = self._parts(number, length)
                key = None if parts is None else self._made.setdefault(number, make(*parts))
            if key is not None:
                places[position] = len(keys)
                keys.append(key)
        return tuple(keys), places

    def _samples(self, packed: _Samples, metrics: tuple[str, ...]) -> Samples:
        keys, places = self._keys(packed, len(SeriesKey._fields), SeriesKey)
        subject = _places(places, packed.subject, packed.rows)
        rows = subject >= 0
        return Samples(
            keys=keys,
            subject=subject[rows],
            time=unpack(packed.time, packed.rows)[rows],
            values=_unpack_all(packed.values, metrics, packed.rows)[rows],
            state=unpack_codes(packed.state, packed.rows).astype(np.uint8)[rows],
            memory_total=unpack(packed.memory_total, packed.key_count)[places >= 0],
            share=None if packed.share is None else unpack(packed.share, packed.key_count)[places >= 0],
        )

    def _uses(self, packed: _Uses) -> Uses:
        keys, places = self._keys(packed, len(SessionKey._fields), SessionKey)
        session = _places(places, packed.session, packed.rows)
        rows = session >= 0
        commands = [self.names.get(packed.commands.get(place, -1)) for place in range(packed.key_count)]
        return Uses(
            keys=keys,
            commands=tuple(
                command if isinstance(command, str) else None
                for command, place in zip(commands, places, strict=True)
                if place >= 0
            ),
            session=session[rows],
            slot=unpack(packed.slot, packed.rows).astype(np.int64)[rows],
            first=unpack(packed.first, packed.rows)[rows],
            last=unpack(packed.last, packed.rows)[rows],
            measures=_unpack_all(packed.measures, USE_MEASURES, packed.rows)[rows],
        )


def _places(places: NDArray[np.int32], packed: Packed, rows: int) -> NDArray[np.int32]:
    codes = unpack_codes(packed, rows)
    if rows and int(codes.max()) >= len(places):
        raise ValueError("rows of subjects that are not there")
    return places[codes]


def _unpack_all(packed: dict[str, Packed], names: tuple[str, ...], rows: int) -> Floats:
    """Give rows × names; columns of another version are left out, those it did not have are unknown."""
    values = np.full((rows, len(names)), np.nan)
    for place, name in enumerate(names):
        if name in packed:
            values[:, place] = unpack(packed[name], rows)
    return values
