"""The demo's past: ninety days of samples and use, as if the herd had been watched all the time.

Sampled coarsely but for the last hours, so that it is there within seconds. What is drawn as a stay is what is counted
as use: the reports can be checked against the stays.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from gpuherd.collect.scenario import MigSlice, Noise, SimulatedGpu
from gpuherd.history.batch import (
    DEVICE_METRICS,
    HOST_METRICS,
    NOT_JUDGED,
    USE_MEASURES,
    Batch,
    Floats,
    Samples,
    SeriesKey,
    SessionKey,
    Uses,
)
from gpuherd.model.devices import DEVICE_STATES
from gpuherd.wiring.demo_herd import DemoNode
from gpuherd.wiring.demo_stays import Stay, demo_stays, plain_number

__all__ = ["FINE_DAYS", "HOUR_SLOT", "SLOT", "DemoPast"]

HOUR = 3600.0
DAY = 24 * HOUR
SLOT, HOUR_SLOT = 900, 3600
FINE_DAYS = 7
GRAINS = (
    (FINE_DAYS * DAY, 900.0, 16 * DAY),
    (8 * HOUR, 300.0, DAY),
    (2 * HOUR, 60.0, DAY),
    (0.0, 10.0, DAY),
)
"""Until how long ago samples lie how far apart and are given how many at once, all in seconds."""
BUSY_FROM = 0.05
FREE, BUSY, HELD = (DEVICE_STATES.index(state) for state in ("free", "busy", "held"))
_DEVICE = {name: place for place, name in enumerate(DEVICE_METRICS)}
_HOST = {name: place for place, name in enumerate(HOST_METRICS)}


def _mean(value: object) -> float:
    return plain_number(value.mean if isinstance(value, Noise) else value)


class _Card:
    """One GPU and its stays, ready to be sampled."""

    def __init__(
        self, node_id: str, gpu: SimulatedGpu, stays: Sequence[Stay], type_name: str, seed: int
    ) -> None:
        self.key = SeriesKey(node_id, gpu.uuid, type_name)
        self.memory_total = plain_number(gpu.memory_total_bytes, np.nan)
        self.power_limit = plain_number(gpu.power_limit_default_watts, 300.0)
        self.clock_hertz = plain_number(gpu.clock_sm_max_mhz, 1500.0) * 1e6
        self.stays = stays
        self._starts = np.array([stay.start for stay in stays])
        self._ends = np.array([stay.end for stay in stays])
        self._loads = np.array([stay.load for stay in stays])
        self._shares = np.array([stay.memory_share for stay in stays])
        self._seed = seed

    def power(self, load: float | Floats) -> float | Floats:
        return self.power_limit * (0.12 + 0.78 * load)

    def sample(self, times: Floats) -> tuple[Floats, NDArray[np.uint8]]:
        """Give moments × DEVICE_METRICS, and the states."""
        chance = np.random.default_rng((self._seed, int(times[0])))
        values = np.full((len(times), len(DEVICE_METRICS)), np.nan)
        place = np.searchsorted(self._starts, times, side="right") - 1
        held = (
            (place >= 0) & (times < self._ends[place])
            if len(self._starts)
            else np.zeros(len(times), np.bool_)
        )
        load = np.where(held, self._loads[place], 0.0) if len(self._starts) else np.zeros(len(times))
        share = np.where(held, self._shares[place], 0.0) if len(self._starts) else np.zeros(len(times))
        works = load >= BUSY_FROM
        utilization = np.where(
            works, np.clip(load + 0.04 * chance.standard_normal(len(times)), 0.06, 1.0), 0.0
        )
        watts = self.power(utilization) + chance.standard_normal(len(times)) * np.where(works, 6.0, 0.6)
        columns = {
            "utilization_gpu": np.round(utilization, 2),
            "utilization_memory": np.round(utilization * 0.45, 2),
            "memory_used_bytes": np.round(share * np.nan_to_num(self.memory_total)) + 12 * 2**20,
            "temperature_celsius": np.round(31 + 38 * utilization + chance.standard_normal(len(times))),
            "power_watts": np.round(np.maximum(watts, 1.0)),
            "power_limit_watts": np.full(len(times), self.power_limit),
            "clock_sm_hertz": np.where(works, self.clock_hertz, 210e6),
            "clock_memory_hertz": np.where(works, 2619e6, 405e6),
            "performance_state": np.where(works, 0.0, 8.0),
            "throttle_reasons": np.where(utilization > 0.9, 4.0, np.where(works, 0.0, 1.0)),
            "ecc_corrected": np.zeros(len(times)),
            "ecc_uncorrected": np.zeros(len(times)),
        }
        for name, column in columns.items():
            values[:, _DEVICE[name]] = column
        if np.isnan(self.memory_total):
            values[:, _DEVICE["memory_used_bytes"]] = np.nan
        states = np.where(works, BUSY, np.where(held, HELD, FREE)).astype(np.uint8)
        return values, states


class _Slice:
    """One slice's past: free until what runs on it now began."""

    def __init__(
        self, node_id: str, part: MigSlice, gpu_memory_total: float, type_name: str, now: float
    ) -> None:
        self.key = SeriesKey(node_id, part.uuid, f"{type_name} {part.profile}")
        self.memory_total = plain_number(part.memory_total_bytes, np.nan)
        self.share = self.memory_total / gpu_memory_total
        self._used = plain_number(part.memory_used_bytes)
        ages = [float(process.age_seconds or 0) for process in part.processes]
        self._used_from = now - max(ages) if ages else np.inf

    def sample(self, times: Floats) -> tuple[Floats, NDArray[np.uint8]]:
        """Give moments × DEVICE_METRICS, and the states."""
        values = np.full((len(times), len(DEVICE_METRICS)), np.nan)
        is_used = times >= self._used_from
        values[:, _DEVICE["memory_used_bytes"]] = np.where(is_used, self._used, 12 * 2**20)
        return values, np.where(is_used, BUSY, FREE).astype(np.uint8)


class DemoPast:
    """What the demo's herd did until ``now``, as batches in order of time."""

    def __init__(
        self,
        herd: Sequence[DemoNode],
        node_ids: Mapping[str, str],
        type_of: Mapping[str, str],
        *,
        now: float,
        days: float = 90.0,
    ) -> None:
        """``node_ids`` by name; ``type_of`` gives a card's short name by its full one. Nobody used slices before."""
        self.now = now
        self.begins = float(np.floor((now - days * DAY) / DAY) * DAY)
        self._cards: list[list[_Card]] = []
        self._slices: list[_Slice] = []
        self._hosts_of = {node_ids[node.name]: node.scenario.host for node in herd}
        self._node_ids = []
        self.stays: list[tuple[SeriesKey, Stay]] = []
        for number, node in enumerate(herd):
            node_id = node_ids[node.name]
            stays = demo_stays(node, now=now, days=days)
            cards = []
            for place, gpu in enumerate(node.scenario.gpus):
                if gpu.mig_slices:
                    total = plain_number(gpu.memory_total_bytes)
                    self._slices += (
                        _Slice(node_id, part, total, type_of[gpu.name], now) for part in gpu.mig_slices
                    )
                    continue
                own = [stay for stay in stays if stay.device == place]
                card = _Card(node_id, gpu, own, type_of[gpu.name], number * 64 + place)
                cards.append(card)
                self.stays += [(card.key, stay) for stay in own]
            self._cards.append(cards)
            self._node_ids.append(node_id)
        self._power = {card.key: card for cards in self._cards for card in cards}
        self._starts = np.array([stay.start for _, stay in self.stays])
        self._ends = np.array([stay.end for _, stay in self.stays])

    def batches(self) -> Iterator[tuple[float, Batch]]:
        """Give a batch for a day or more, the later the finer. The last ones are sampled as nodes report."""
        start = self.begins
        for ago, grain, length in GRAINS:
            until = self.now - grain if not ago else np.floor((self.now - ago) / HOUR) * HOUR
            while start < until:
                end = min(start + length, until)
                is_last = not ago and end == until
                # The last part is counted like samples that come: each stands for the time before it.
                times = np.arange(start if ago else start + grain, end, grain)
                yield grain, self._batch(times, start, self.now if is_last else end)
                start = end

    def _batch(self, times: Floats, start: float, end: float) -> Batch:
        cards = [card for node in self._cards for card in node]
        sampled = [card.sample(times) for card in cards]
        units: list[_Card | _Slice] = [*cards, *self._slices]
        all_sampled = [*sampled, *(part.sample(times) for part in self._slices)]
        devices = Samples(
            keys=tuple(unit.key for unit in units),
            subject=np.repeat(np.arange(len(units), dtype=np.int32), len(times)),
            time=np.tile(times, len(units)),
            values=np.concatenate([values for values, _ in all_sampled]),
            state=np.concatenate([states for _, states in all_sampled]),
            memory_total=np.array([unit.memory_total for unit in units]),
            share=np.array([1.0] * len(cards) + [part.share for part in self._slices]),
        )
        return Batch(
            written_at=float(end),
            devices=devices,
            hosts=self._hosts(times, cards, sampled),
            uses=self._uses(start, end, HOUR_SLOT if end <= self.now - FINE_DAYS * DAY else SLOT),
            seen=tuple((node_id, float(times[-1])) for node_id in self._node_ids),
        )

    def _hosts(
        self, times: Floats, cards: list[_Card], sampled: list[tuple[Floats, NDArray[np.uint8]]]
    ) -> Samples:
        values = np.full((len(self._node_ids), len(times), len(HOST_METRICS)), np.nan)
        column = _DEVICE["utilization_gpu"]
        for place, node_id in enumerate(self._node_ids):
            own = [
                values_[:, column]
                for card, (values_, _) in zip(cards, sampled, strict=True)
                if card.key.node_id == node_id
            ]
            load = np.mean(own, axis=0) if own else np.zeros(len(times))
            host = self._hosts_of[node_id]
            if host is None:
                continue
            level = 0.6 + 0.7 * load  # about what it does now when half of its GPUs work
            values[place, :, _HOST["cpu_ratio"]] = np.round(
                np.minimum(1.0, _mean(host.cpu_percent) / 100 * level), 3
            )
            values[place, :, _HOST["load_1m"]] = np.round(_mean(host.load_1m) * level, 2)
            values[place, :, _HOST["memory_used_bytes"]] = np.round(
                _mean(host.memory_used_bytes) * (0.8 + 0.4 * load)
            )
            values[place, :, _HOST["uptime_seconds"]] = np.round(times - self.begins + 41 * DAY)
        count = len(self._node_ids)
        return Samples(
            keys=tuple(SeriesKey(node_id) for node_id in self._node_ids),
            subject=np.repeat(np.arange(count, dtype=np.int32), len(times)),
            time=np.tile(times, count),
            values=values.reshape(-1, len(HOST_METRICS)),
            state=np.full(count * len(times), NOT_JUDGED, np.uint8),
            memory_total=np.full(count, np.nan),
        )

    def _uses(self, start: float, end: float, length: int) -> Uses:
        keys: list[SessionKey] = []
        commands: list[str | None] = []
        sessions: list[NDArray[np.int32]] = []
        slots: list[NDArray[np.int64]] = []
        firsts: list[Floats] = []
        lasts: list[Floats] = []
        measures: list[Floats] = []
        for place in np.flatnonzero((self._starts < end) & (self._ends > start)):
            key, stay = self.stays[place]
            begins, ends = max(start, stay.start), min(end, stay.end)
            card = self._power[key]
            slot = np.arange(int(begins // length), int(np.ceil(ends / length)), dtype=np.int64) * length
            first, last = np.maximum(slot, begins), np.minimum(slot + length, ends)
            seconds = last - first
            is_busy = stay.load >= BUSY_FROM
            memory = stay.memory_share * card.memory_total
            columns = {
                "held_seconds": seconds,
                "gpu_seconds": seconds,
                "busy_seconds": seconds * is_busy,
                "unknown_seconds": np.zeros(len(slot)),
                "work_seconds": seconds * (stay.load if is_busy else 0.0),
                "memory_byte_seconds": seconds * (0.0 if np.isnan(memory) else memory),
                "joules": seconds * card.power(stay.load if is_busy else 0.0),
            }
            sessions.append(np.full(len(slot), len(keys), np.int32))
            keys.append(SessionKey(key.node_id, key.uuid, key.type, stay.user, None, stay.job, stay.start))
            commands.append(stay.command)
            slots.append(slot)
            firsts.append(first)
            lasts.append(last)
            measures.append(np.column_stack([columns[name] for name in USE_MEASURES]))
        empty = not keys
        return Uses(
            keys=tuple(keys),
            commands=tuple(commands),
            session=np.empty(0, np.int32) if empty else np.concatenate(sessions),
            slot=np.empty(0, np.int64) if empty else np.concatenate(slots),
            first=np.empty(0) if empty else np.concatenate(firsts),
            last=np.empty(0) if empty else np.concatenate(lasts),
            measures=np.empty((0, len(USE_MEASURES))) if empty else np.concatenate(measures),
        )
