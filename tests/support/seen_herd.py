"""Herds as a hub tells them, made up: every state, and names that mean harm."""

from __future__ import annotations

from gpuherd.client.herd_views import (
    Availability,
    Gpu,
    GpuBooking,
    GpuFacts,
    GpuSample,
    Herd,
    Node,
    Problem,
    UsingProcess,
)

__all__ = ["EVIL", "GIB", "NOW", "every_state", "gpu", "hostile_herd", "node", "process"]

GIB = 2**30
NOW = 1_790_000_000.0
HOUR = 3600.0
EVIL = "\x1b[2J\x1b[31m\u202egpu\u200b07\r\n"
"""Clears the screen, paints it red, turns writing around, hides a letter and begins a new line."""


def process(
    user: str | None, *, gib: int | None = 10, hours: float | None = 5, kind: str = "compute"
) -> UsingProcess:
    return UsingProcess(
        pid=4242,
        kind=kind,
        user=user,
        command="python train.py",
        started_at=None if hours is None else NOW - hours * HOUR,
        gpu_memory_bytes=None if gib is None else gib * GIB,
    )


def gpu(
    index: int,
    state: str = "free",
    *,
    users: tuple[str | None, ...] = (),
    name: str = "A100 80GB",
    since: float | None = NOW - HOUR,
    reason: str = "",
    bookings: tuple[GpuBooking, ...] = (),
    sample: GpuSample | None = None,
    parent: str | None = None,
    is_partitioned: bool = False,
    memory_gib: int | None = 80,
    uuid: str | None = None,
) -> Gpu:
    load = {"busy": 0.74, "free": 0.0, "held": 0.0, "booked": 0.0}.get(state)
    return Gpu(
        node_id="n",
        short_name=name,
        facts=GpuFacts(
            uuid=uuid or f"GPU-{index:08d}",
            index=index,
            name=f"NVIDIA {name}",
            parent_uuid=parent,
            kind="gpu" if parent is None else "slice",
            profile=None if parent is None else "1g.10gb",
            is_partitioned=is_partitioned,
            memory_total_bytes=None if memory_gib is None else memory_gib * GIB,
        ),
        sample=sample
        if sample is not None
        else GpuSample(
            utilization_gpu=load, memory_used_bytes=38 * GIB, temperature_celsius=62.0, power_watts=410.0
        ),
        availability=Availability(state=state, reason=reason or f"because {state}", since=since),
        processes=tuple(process(user) for user in users),
        bookings=bookings,
    )


def node(name: str, *devices: Gpu, state: str = "live", age: float | None = 1.0, **more: object) -> Node:
    told = {"id": name, "name": name, "state": state, "reason": f"it is {state}", "age_seconds": age, **more}
    return Node(devices=devices, **told)  # type: ignore[arg-type]


def booking(
    holder: str, *, starts: float, ends: float, phase: str = "current", use: str | None = None
) -> GpuBooking:
    """Hours from now."""
    return GpuBooking(
        id=17,
        holder=holder,
        title="ablation",
        starts_at=int(NOW + starts * HOUR),
        ends_at=int(NOW + ends * HOUR),
        phase=phase,
        use=use,
    )


def every_state() -> Herd:
    """One of each, and some that nobody knows yet."""
    return Herd(
        time=NOW,
        nodes=(
            node(
                "gpu07",
                gpu(0, "free"),
                gpu(1, "busy", users=("ada", "bob")),
                gpu(2, "held", users=("ada",), since=NOW - 3 * HOUR),
                gpu(3, "booked", bookings=(booking("cleo", starts=-1, ends=2),)),
                gpu(4, "fault", reason="Xid 79: GPU has fallen off the bus"),
                gpu(5, "unknown", reason="some values that decide this could not be read", since=None),
                gpu(6, "resting"),
                gpu(7, "free", bookings=(booking("dan", starts=3, ends=9, phase="next"),)),
                gpu(8, "busy", users=("eve",), bookings=(booking("cleo", starts=-1, ends=200),)),
                gpu(9, "busy", users=("cleo",), bookings=(booking("cleo", starts=-1, ends=2),)),
            ),
            node("gpu08", gpu(0, "stale", users=("ada",)), state="stale", age=9.0),
            node("gpu09", gpu(0, "offline"), gpu(1, "offline"), state="offline", age=3 * HOUR),
            node("gpu10", state="never", age=None),
            node(
                "gpu11",
                *(gpu(index, "fault", reason="the driver does not respond") for index in range(4)),
                problems=(Problem(code="driver_hung", message="the driver does not respond", is_fault=True),),
            ),
            node(
                "gpu12",
                gpu(0, "busy", is_partitioned=True, uuid="GPU-parent"),
                gpu(0, "free", parent="GPU-parent", name="A100 80GB 1g.10gb", uuid="MIG-0", memory_gib=10),
                gpu(1, "busy", parent="GPU-parent", name="A100 80GB 1g.10gb", uuid="MIG-1", users=(None,)),
                gpu(1, "free", name="H100 80GB", sample=GpuSample(), memory_gib=None, since=None),
            ),
        ),
    )


def hostile_herd() -> Herd:
    """A node that would like to draw on the reader's terminal wherever it is given a place."""
    bad = gpu(
        0,
        "busy",
        users=(EVIL, "日本語のユーザー"),
        name=EVIL,
        reason=EVIL,
        uuid=EVIL,
        bookings=(booking(EVIL, starts=-1, ends=1, use=EVIL),),
    )
    fault = gpu(1, "fault", reason=EVIL, name="e\u0301toile" + "ﷺ" * 20)
    odd = gpu(2, EVIL)
    return Herd(
        time=NOW,
        nodes=(
            node(
                EVIL, bad, fault, odd, problems=(Problem(code=EVIL, message=EVIL), Problem(message=EVIL * 99))
            ),
            node("機械" * 40, gpu(0, "offline"), state=EVIL, reason=EVIL),
        ),
    )
