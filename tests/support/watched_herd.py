"""A made-up herd as a hub's live stream would tell it, and a feed that brings what a test gives it."""

from __future__ import annotations

import math
from typing import Any

from msgspec import structs

from gpuherd.client.herd_views import (
    Availability,
    Gpu,
    GpuBooking,
    GpuFacts,
    GpuSample,
    Herd,
    HostFacts,
    HostSample,
    Node,
    Problem,
    UsingProcess,
)
from gpuherd.client.live import Feed, News
from gpuherd.client.live_messages import GpuColumns, HerdChange
from gpuherd.client.live_picture import Pictures

GIB = 2**30
NOW = 1_790_000_000.0
HOSTILE = "\x1b[31m[red]evil[/red]\u202e\u200b"

TRAINING = "torchrun --nproc_per_node=8 train.py --config configs/pretrain_7b.yaml"


class ScriptedFeed(Feed):
    """Brings what it is given, in the test's own thread; remembers what is asked of it."""

    def __init__(self, *news: News, place: str = "https://gpus.example.org") -> None:
        super().__init__(place)
        self._waiting = list(news)
        self.asked: list[str] = []

    def start(self, wake: Any) -> None:
        self._wake = wake
        wake()

    def bring(self, *news: News) -> None:
        self._waiting += news
        self._wake()

    def retry(self) -> None:
        self.asked.append("retry")

    def reject(self, reason: str) -> None:
        self.asked.append(f"reject: {reason}")

    def pause(self) -> None:
        self.asked.append("pause")

    def resume(self) -> None:
        self.asked.append("resume")

    def stop(self) -> None:
        self.asked.append("stop")


class StillClock:
    """Monotonic time that moves when told."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def process(
    pid: int, user: str | None, memory_gib: float, *, hours: float = 5, load: float = 0.9, **more: Any
) -> UsingProcess:
    facts: dict[str, Any] = {"command": TRAINING, "started_at": NOW - hours * 3600, **more}
    return UsingProcess(
        pid=pid,
        user=user,
        gpu_memory_bytes=int(memory_gib * GIB),
        utilization_sm=load,
        cpu_cores=1.6 * load,
        memory_bytes=24 * GIB,
        **facts,
    )


def device(
    node: str,
    index: int,
    state: str,
    *processes: UsingProcess,
    load: float | None = 0.0,
    name: str = "H100 80GB",
    memory_gib: int = 80,
    hours: float = 2.0,
    reason: str = "",
    bookings: tuple[GpuBooking, ...] = (),
    **facts: Any,
) -> Gpu:
    used = sum(each.gpu_memory_bytes or 0 for each in processes)
    hot = load or 0.0
    return Gpu(
        node_id=node,
        short_name=name,
        facts=GpuFacts(
            **{
                "uuid": f"GPU-{node}-{index}",
                "index": index,
                "name": f"NVIDIA {name}",
                "memory_total_bytes": memory_gib * GIB,
                "pci_bus_id": f"00000000:{16 + index:02X}:00.0",
                **facts,
            }
        ),
        sample=GpuSample(
            utilization_gpu=load,
            memory_used_bytes=used + 12 * 2**20,
            temperature_celsius=31 + 36 * hot,
            power_watts=90 + 560 * hot,
            power_limit_watts=700,
            clock_sm_hertz=1.98e9 if hot else 2.1e8,
            performance_state=0 if hot else 8,
            throttle_reasons=4 if hot > 0.95 else 0,
            ecc_uncorrected=0,
        ),
        availability=Availability(state=state, reason=reason, since=NOW - hours * 3600),
        processes=processes,
        bookings=bookings,
    )


def node(name: str, *devices: Gpu, state: str = "live", reason: str = "", **more: Any) -> Node:
    return Node(
        id=name,
        name=more.pop("shown_name", name),
        way="push",
        state=state,
        reason=reason,
        received_at=NOW - (1 if state == "live" else 4000),
        interval_seconds=1.0,
        host=HostFacts(
            hostname=name,
            os="Debian GNU/Linux 12 (bookworm)",
            kernel="6.1.0-37-amd64",
            cpu_model="AMD EPYC 9354",
            cpu_count=128,
            memory_total_bytes=512 * GIB,
            driver_version="580.95.05",
            cuda_version="13.0",
            agent_version="0.7.0",
        ),
        host_sample=HostSample(
            cpu_ratio=0.34, load_1m=41.5, memory_used_bytes=201 * GIB, uptime_seconds=41 * 86_400
        ),
        devices=devices,
        **more,
    )


def booking(
    number: int, holder: str, phase: str, hours_from: float, hours_to: float, **more: Any
) -> GpuBooking:
    return GpuBooking(
        id=number,
        holder=holder,
        starts_at=int(NOW + hours_from * 3600),
        ends_at=int(NOW + hours_to * 3600),
        phase=phase,
        **more,
    )


def made_up_herd() -> Herd:
    """Six nodes with everything that can be told apart: users 01 to 09 are nobody."""
    mine = booking(7, "user07", "current", -3, 5, title="camera-ready figures", use="holder")
    ahead = booking(8, "user04", "next", 9, 33, title="pretraining, run 7")
    lost = Problem(
        code="gpu_lost",
        message="GPU 1 fell off the bus: reset it",
        device_uuid="GPU-l40s-01-1",
        is_fault=True,
    )
    return Herd(
        time=NOW,
        nodes=(
            node(
                "h100-01",
                device(
                    "h100-01",
                    0,
                    "busy",
                    process(4001, "user07", 71, job="43233"),
                    load=0.97,
                    bookings=(mine,),
                ),
                device(
                    "h100-01",
                    1,
                    "busy",
                    process(4002, "user07", 70, job="43233"),
                    load=0.91,
                    bookings=(mine,),
                ),
                device("h100-01", 2, "held", process(5100, "user02", 24, hours=51, load=0.0), hours=26),
                device("h100-01", 3, "free", hours=0.2),
            ),
            node(
                "h100-02",
                *(
                    device(
                        "h100-02", index, "busy", process(6000 + index, "user04", 62), load=0.75 + index / 50
                    )
                    for index in range(4)
                ),
            ),
            node(
                "a100-01",
                device("a100-01", 0, "busy", load=None, name="A100 80GB", is_partitioned=True),
                device(
                    "a100-01",
                    1,
                    "busy",
                    process(7001, "user05", 5),
                    load=None,
                    name="A100 80GB 1g.10gb",
                    memory_gib=10,
                    kind="slice",
                    parent_uuid="GPU-a100-01-0",
                    profile="1g.10gb",
                ),
                device(
                    "a100-01",
                    2,
                    "free",
                    load=None,
                    name="A100 80GB 1g.10gb",
                    memory_gib=10,
                    kind="slice",
                    parent_uuid="GPU-a100-01-0",
                    profile="1g.10gb",
                ),
                device(
                    "a100-01",
                    3,
                    "booked",
                    name="A100 80GB",
                    bookings=(structs.replace(ahead, phase="current"),),
                ),
            ),
            node(
                "l40s-01",
                device("l40s-01", 0, "free", name="L40S", memory_gib=45, bookings=(ahead,)),
                device(
                    "l40s-01",
                    1,
                    "fault",
                    name="L40S",
                    memory_gib=45,
                    load=None,
                    reason="GPU is lost: reset it",
                ),
                device(
                    "l40s-01",
                    2,
                    "busy",
                    process(8001, "user01", 12, hours=0.3),
                    process(8002, None, 3, hours=0.1, command=None),
                    load=0.33,
                    name="L40S",
                    memory_gib=45,
                ),
                problems=(lost,),
            ),
            node(
                "v100-01",
                device("v100-01", 0, "offline", name="V100 32GB", memory_gib=32, load=None, hours=1.1),
                device("v100-01", 1, "offline", name="V100 32GB", memory_gib=32, load=None, hours=1.1),
                state="offline",
                reason="no report for 66 min; is its agent running?",
            ),
            node(
                "evil",
                device(
                    "evil",
                    0,
                    "busy",
                    process(9001, HOSTILE, 1, command=f"run {HOSTILE} [bold]x[/bold]", job=HOSTILE),
                    name=HOSTILE,
                    load=0.5,
                    reason=HOSTILE,
                ),
                shown_name=f"zz{HOSTILE}",
            ),
        ),
    )


def story(herd: Herd, *, ticks: int = 60, seconds: float = 5.0) -> list[HerdChange]:
    """The herd and its last minutes: a snapshot and changes in which loads go up and down; it ends as it is told."""
    last = Pictures().snapshot(herd, 1.0)
    first = structs.replace(last, time=herd.time - ticks * seconds)
    columns = last.devices
    told = [first]
    for tick in range(1, ticks + 1):
        share = 1.0 if tick == ticks else 0.8 + 0.2 * math.sin(tick / 5)
        told.append(
            HerdChange(
                tick=first.tick + tick,
                after_tick=first.tick + tick - 1,
                time=first.time + tick * seconds,
                totals=last.totals,
                devices=GpuColumns(
                    **{
                        **{name: getattr(columns, name) for name in columns.__struct_fields__},
                        "utilization_gpu": [
                            None if value is None else round(value * share, 2)
                            for value in columns.utilization_gpu
                        ],
                    }
                ),
            )
        )
    return told
