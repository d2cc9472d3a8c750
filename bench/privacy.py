"""What privacy classes and bookings cost a tick of the hub: 1,000 nodes of 8 GPUs, every number of which changes."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence

from bench.measure import Figure, alternate
from gpuherd.api.stream_blocks import Issue
from gpuherd.fleet.clock import SystemClock
from gpuherd.fleet.editions import FaceEditor
from gpuherd.fleet.fleet import Fleet
from gpuherd.model.bookings import DeviceBookingFacts, DeviceRef
from gpuherd.model.devices import DeviceFacts, DeviceSample
from gpuherd.model.hosts import HostFacts, HostSample
from gpuherd.model.people import PrivacyClass
from gpuherd.model.processes import Process, ProcessSample, ProcessTable, ProcessUse, UseSample
from gpuherd.model.reports import NodeFacts, Report, Sample

__all__ = ["measure_privacy"]

NODES = 1000
DEVICES = 8
BOOKED = 2000
GIB = 2**30
ALL: tuple[PrivacyClass, ...] = ("public", "member", "admin")


class _Herd:
    """A fleet that is told new numbers of everything before each tick."""

    def __init__(self) -> None:
        self._chance = random.Random(7)  # noqa: S311 - repeatable, not secret
        self.fleet = Fleet(clock=SystemClock())
        self._tables = [self._table(node) for node in range(NODES)]
        self._facts = [_facts(node) for node in range(NODES)]
        for node in range(NODES):
            self.fleet.add_node(f"n{node}", f"n{node}")
        self.report()
        self.fleet.tick()

    def _table(self, node: int) -> ProcessTable:
        return ProcessTable(
            processes=tuple(
                Process(
                    pid=100 + device,
                    user=f"user{self._chance.randrange(200)}",
                    command=f"/usr/bin/python3 train.py --data /scratch/set{device} --run run-{node}-{device}",
                )
                for device in range(DEVICES)
            ),
            uses=tuple(ProcessUse(process=device, device=device) for device in range(DEVICES)),
        )

    def report(self) -> None:
        chance = self._chance
        for node in range(NODES):
            sample = Sample(
                time=time.time(),
                host=HostSample(cpu_ratio=chance.random()),
                devices=tuple(
                    DeviceSample(
                        utilization_gpu=chance.uniform(0.1, 1),
                        memory_used_bytes=chance.randrange(4 * GIB, 80 * GIB),
                        temperature_celsius=chance.uniform(30, 90),
                        power_watts=chance.uniform(60, 400),
                    )
                    for _ in range(DEVICES)
                ),
                processes=(ProcessSample(),) * DEVICES,
                uses=(UseSample(),) * DEVICES,
            )
            self.fleet.accept_report(
                f"n{node}", Report(facts=self._facts[node], sample=sample, table=self._tables[node])
            )

    def book(self, count: int) -> None:
        now = int(time.time())
        self.fleet.set_bookings(
            DeviceBookingFacts(
                device=DeviceRef(f"n{number % NODES}", f"GPU-{number % NODES}-{number // NODES}"),
                booking_id=number,
                holder=f"Holder {number}",
                title="a run",
                starts_at=now,
                ends_at=now + 86_400,
                linux_names=frozenset({f"user{number % 200}"}),
            )
            for number in range(count)
        )


def _facts(node: int) -> NodeFacts:
    return NodeFacts(
        host=HostFacts(hostname=f"n{node}"),
        devices=tuple(
            DeviceFacts(
                uuid=f"GPU-{node}-{device}", index=device, name="NVIDIA A100", memory_total_bytes=80 * GIB
            )
            for device in range(DEVICES)
        ),
    )


def _cpu_ms(action: Callable[[], None]) -> float:
    begin = time.process_time()
    action()
    return (time.process_time() - begin) * 1e3


def _message_ms(
    herd: _Herd, classes: Sequence[PrivacyClass], editors: dict[PrivacyClass, FaceEditor]
) -> float:
    def tell() -> None:
        issue = Issue("change", herd.fleet.change())
        for privacy in classes:
            issue.content(privacy, editors[privacy], True)

    herd.report()
    herd.fleet.tick()
    return _cpu_ms(tell)


def _tick_ms(herd: _Herd, booked: int) -> float:
    herd.book(booked)
    herd.fleet.tick()  # the one that looks the bookings up
    herd.report()
    return _cpu_ms(herd.fleet.tick)


def measure_privacy(rounds: int = 9) -> list[Figure]:
    """Compare three classes with one, and a tick with bookings with one without, in turns; medians of CPU time."""
    herd = _Herd()
    editors = {privacy: FaceEditor(herd.fleet.face(privacy)) for privacy in ALL}
    one, three = alternate(
        rounds,
        lambda: _message_ms(herd, ("member",), editors),
        lambda: _message_ms(herd, ALL, editors),
    )
    free, booked = alternate(rounds, lambda: _tick_ms(herd, 0), lambda: _tick_ms(herd, BOOKED))
    return [
        _figure(
            f"message of a tick for {len(ALL)} privacy classes, compressed ({NODES:,} nodes, {NODES * DEVICES:,} GPUs)",
            three,
            one,
            "one class",
            goal=1.5,
        ),
        _figure(f"tick with {BOOKED:,} bookings that run", booked, free, "none", goal=1.5),
    ]


def _figure(what: str, value: float, baseline: float, against: str, *, goal: float) -> Figure:
    return Figure(
        id="privacy",
        what=what,
        value=round(value, 2),
        unit="ms",
        against=against,
        baseline=round(baseline, 2),
        ratio=round(value / baseline, 2),
        goal=f"≤ {goal:g}×",
        met=value / baseline <= goal,
    )
