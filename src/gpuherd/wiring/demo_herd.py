"""A believable herd for the demo: mixed cards, users who train, serve, debug and forget, and things that break."""

from __future__ import annotations

import random
import uuid
from typing import NamedTuple

from msgspec import Struct, structs

from gpuherd.collect.scenario import (
    Fault,
    MigSlice,
    Noise,
    Scenario,
    SimulatedGpu,
    SimulatedProcess,
    Square,
    Sum,
)
from gpuherd.collect.scenario.cards import SimulatedHost
from gpuherd.model.devices import ThrottleReason
from gpuherd.model.hosts import Address, Disk, HostFacts

__all__ = ["DemoNode", "demo_herd"]

GIB = 2**30
TIB = 2**40


class Model(NamedTuple):
    """A kind of card."""

    name: str
    architecture: str
    capability: str
    memory_gib: int
    power_watts: int
    clock_mhz: int


H100 = Model("NVIDIA H100 80GB HBM3", "hopper", "9.0", 80, 700, 1980)
A100 = Model("NVIDIA A100-SXM4-80GB", "ampere", "8.0", 80, 400, 1410)
L40S = Model("NVIDIA L40S", "ada", "8.9", 45, 350, 2520)
RTX4090 = Model("NVIDIA GeForce RTX 4090", "ada", "8.9", 24, 450, 2520)
A6000 = Model("NVIDIA RTX A6000", "ampere", "8.6", 48, 300, 2100)
V100 = Model("Tesla V100-SXM2-32GB", "volta", "7.0", 32, 300, 1530)
GB10 = Model("NVIDIA GB10", "blackwell", "12.1", 0, 140, 2400)

PLAN: tuple[tuple[str, Model, int, int], ...] = (
    ("h100", H100, 8, 6),
    ("a100", A100, 8, 5),
    ("l40s", L40S, 4, 4),
    ("rtx", RTX4090, 4, 4),
    ("a6000", A6000, 8, 2),
    ("v100", V100, 4, 2),
    ("spark", GB10, 1, 1),
)
"""Name, card, cards per node, nodes; repeated when more nodes are asked for."""

TRAINING = (
    "torchrun --nproc_per_node=8 train.py --config configs/pretrain_7b.yaml",
    "python train_diffusion.py --resolution 1024 --batch 32",
    "accelerate launch finetune.py --model base-13b --lora-rank 64",
    "python -m trainer.main experiment=ablation_3 seed=1",
)
SERVING = ("vllm serve base-70b --tensor-parallel-size 4", "tritonserver --model-repository=/models")
HELD = ("jupyter-lab --no-browser --port 8890", "python -i explore.py", "ipykernel_launcher -f kernel.json")


class DemoNode(Struct, frozen=True, kw_only=True):
    """One simulated node; ``reports`` limits how many samples it sends before it falls silent.

    ``pulled``: the position of a card that is pulled out while the node reports.
    """

    name: str
    scenario: Scenario
    reports: int | None = None
    pulled: int | None = None


class _Herd:
    """Draws everything from one seed, so that every demo is the same herd."""

    def __init__(self, seed: int, epoch: float) -> None:
        self._chance = random.Random(seed)  # noqa: S311 - repeatable, not secret
        self._epoch = epoch
        self._pid = 4000

    def user(self, last: int = 14) -> str:
        return f"user{self._chance.randint(1, last):02}"

    def uuid(self, prefix: str = "GPU") -> str:
        return f"{prefix}-{uuid.UUID(int=self._chance.getrandbits(128), version=4)}"

    def process(
        self, user: str, command: str, memory_bytes: int, age_hours: float, busy: bool, job: str | None = None
    ) -> SimulatedProcess:
        self._pid += self._chance.randint(1, 40)
        return SimulatedProcess(
            pid=self._pid,
            memory_used_bytes=memory_bytes,
            sm_percent=Noise(mean=85, amplitude=10, period=3, seed=self._pid) if busy else 0,
            user=user,
            command=command,
            age_seconds=round(age_hours * 3600),
            host_cpu_percent=Noise(mean=160, amplitude=60, period=4, seed=self._pid) if busy else 0,
            host_memory_bytes=self._chance.randint(4, 40) * GIB,
            job=job,
        )

    def card(
        self, model: Model, index: int, processes: tuple[SimulatedProcess, ...] = (), load: float = 0.0
    ) -> SimulatedGpu:
        """Make a card that works at ``load`` (0 to 1); its heat and power follow."""
        seed = self._chance.randrange(2**31)
        used = sum(p.memory_used_bytes for p in processes if isinstance(p.memory_used_bytes, int))
        total = model.memory_gib * GIB or None
        work = self._work(load, seed)
        return SimulatedGpu(
            uuid=self.uuid(),
            name=model.name,
            architecture=model.architecture,  # type: ignore[arg-type] # one of the literals, from the table above
            compute_capability=model.capability,
            pci_bus_id=f"00000000:{0x10 + 0x0B * index:02X}:00.0",
            persistence_mode=True,
            memory_total_bytes=total,
            memory_reserved_bytes=None if total is None else GIB // 2,
            memory_used_bytes=None if total is None else used + 12 * 2**20,
            utilization_gpu_percent=work,
            utilization_memory_percent=0
            if not load
            else Noise(mean=42 * load, amplitude=9, period=3, seed=seed + 1),
            utilization_encoder_percent=0,
            utilization_decoder_percent=0,
            temperature_celsius=Noise(mean=31 + 38 * load, amplitude=2, period=20, seed=seed + 2),
            power_watts=Noise(
                mean=model.power_watts * (0.12 + 0.78 * load),
                amplitude=model.power_watts * 0.05 * (0.1 + load),
                period=2,
                seed=seed + 3,
            ),
            power_limit_watts=model.power_watts,
            power_limit_default_watts=model.power_watts,
            clock_sm_mhz=model.clock_mhz if load else 210,
            clock_sm_max_mhz=model.clock_mhz,
            clock_memory_mhz=2619 if load else 405,
            performance_state=0 if load else 8,
            throttle_reasons=4 if load > 0.9 else (0 if load else 1),
            fan_percent=None if model in {H100, A100, V100, GB10} else round(30 + 45 * load),
            ecc_corrected_volatile=0,
            ecc_uncorrected_volatile=0,
            processes=processes,
        )

    def _work(self, load: float, seed: int) -> Sum | int:
        if not load:
            return 0
        dip = Square(low=0, high=-60 * load, period=300 + seed % 200, duty=0.06, phase=(seed % 97) / 97)
        noise = Noise(mean=100 * load, amplitude=5, period=3, seed=seed)
        return Sum(parts=(noise, dip), minimum=0, maximum=100)

    def cards(self, model: Model, count: int) -> tuple[SimulatedGpu, ...]:
        """Fill a node the way people do: one large job, several small ones, something forgotten, something free."""
        style = self._chance.random()
        if style < 0.25:
            return self._one_job(model, count)
        cards = []
        for index in range(count):
            draw = self._chance.random()
            if draw < 0.34:
                cards.append(self.card(model, index))
            elif draw < 0.46:
                held = self.process(
                    self.user(), self._chance.choice(HELD), self._share(model, 0.3), 30, busy=False
                )
                cards.append(self.card(model, index, (held,)))
            else:
                work = self.process(
                    self.user(),
                    self._chance.choice(TRAINING),
                    self._share(model, 0.7),
                    self._chance.uniform(0.2, 60),
                    busy=True,
                )
                cards.append(self.card(model, index, (work,), self._chance.uniform(0.55, 0.97)))
        return tuple(cards)

    def _one_job(self, model: Model, count: int) -> tuple[SimulatedGpu, ...]:
        user, command = self.user(), self._chance.choice(TRAINING[:1] + SERVING)
        age, load = self._chance.uniform(1, 90), self._chance.uniform(0.75, 0.98)
        job = str(self._chance.randint(40_000, 49_999))
        return tuple(
            self.card(
                model, index, (self.process(user, command, self._share(model, 0.9), age, True, job),), load
            )
            for index in range(count)
        )

    def _share(self, model: Model, share: float) -> int:
        return int(model.memory_gib * GIB * share * self._chance.uniform(0.85, 1.0))

    def host(self, name: str, number: int, gpus: int) -> SimulatedHost:
        cores = 32 * max(1, gpus // 2)
        memory = 64 * GIB * max(2, gpus)
        return SimulatedHost(
            facts=HostFacts(
                hostname=name,
                os="Debian GNU/Linux 12 (bookworm)",
                kernel="6.1.0-37-amd64",
                architecture="x86_64",
                cpu_model="AMD EPYC 9354",
                cpu_count=cores,
                memory_total_bytes=memory,
                addresses=(Address("eno1", f"192.0.2.{number}"),),
                disks=(Disk(mount="/", total_bytes=2 * TIB), Disk(mount="/scratch", total_bytes=14 * TIB)),
            ),
            cpu_percent=Noise(mean=self._chance.uniform(8, 55), amplitude=6, period=5, seed=number),
            load_1m=Noise(mean=cores * 0.3, amplitude=cores * 0.05, period=30, seed=number),
            memory_used_bytes=Noise(mean=memory * 0.4, amplitude=memory * 0.02, period=30, seed=number),
        )

    def scenario(self, name: str, number: int, gpus: tuple[SimulatedGpu, ...], *faults: Fault) -> Scenario:
        return Scenario(
            driver_version="580.95.05",
            cuda_version="13.0",
            epoch=self._epoch,
            host=self.host(name, number, len(gpus)),
            gpus=gpus,
            faults=faults,
        )

    def sliced(self, model: Model, index: int) -> SimulatedGpu:
        """Cut a card into slices, two of them in use."""
        memory = 10 * GIB
        slices = []
        for number in range(7):
            used = (
                ()
                if number not in {0, 3}
                else (self.process(self.user(), TRAINING[3], memory // 2, 5, busy=True),)
            )
            slices.append(
                MigSlice(
                    uuid=self.uuid("MIG"),
                    profile="1g.10gb",
                    gpu_instance=7 + number,
                    compute_instance=0,
                    memory_total_bytes=memory,
                    memory_used_bytes=sum(int(memory // 2) for _ in used) + 12 * 2**20,
                    processes=used,
                )
            )
        whole = self.card(model, index)
        return structs.replace(
            whole,
            mig_mode=True,
            mig_slices=tuple(slices),
            utilization_gpu_percent=None,
            utilization_memory_percent=None,
        )


def demo_herd(nodes: int = 24, *, seed: int = 7, epoch: float) -> tuple[DemoNode, ...]:
    """Draw a herd. ``epoch`` is the Unix time at which it begins.

    From eight nodes on it holds one of each trouble: a lost GPU, a driver that hangs, a node that falls silent, a node
    with MIG slices, a user who holds a whole node without using it; from 24 on a node with a card under its power
    brake and one that is pulled out.
    """
    herd = _Herd(seed, epoch)
    names = [(f"{kind}-{number:02}", model, count) for kind, model, count, number in _numbered(nodes)]
    drawn = []
    for number, (name, model, count) in enumerate(names, 1):
        drawn.append(DemoNode(name=name, scenario=herd.scenario(name, number, herd.cards(model, count))))
    if nodes >= 8:
        _spoil(herd, drawn, names)
    return tuple(drawn)


def _numbered(nodes: int) -> list[tuple[str, Model, int, int]]:
    chosen: list[tuple[str, Model, int, int]] = []
    counts: dict[str, int] = {}
    whole = sum(share for *_, share in PLAN)
    for kind, model, count, share in PLAN:
        for _ in range(max(1, round(nodes * share / whole))):
            counts[kind] = counts.get(kind, 0) + 1
            chosen.append((kind, model, count, counts[kind]))
    while len(chosen) < nodes:
        counts["h100"] = counts.get("h100", 0) + 1
        chosen.append(("h100", H100, 8, counts["h100"]))
    return chosen[:nodes]


def _spoil(herd: _Herd, drawn: list[DemoNode], names: list[tuple[str, Model, int]]) -> None:
    """Put one of each trouble into the herd."""
    first = {model: place for place, (_, model, _) in reversed(list(enumerate(names)))}
    last = {model: place for place, (_, model, _) in enumerate(names)}

    def put(
        place: int,
        gpus: tuple[SimulatedGpu, ...],
        *faults: Fault,
        reports: int | None = None,
        pulled: int | None = None,
    ) -> None:
        name = names[place][0]
        scenario = herd.scenario(name, place + 1, gpus, *faults)
        drawn[place] = DemoNode(name=name, scenario=scenario, reports=reports, pulled=pulled)

    held = tuple(
        herd.card(H100, index, (herd.process("user17", HELD[0], 61 * GIB, 51, busy=False),))
        for index in range(8)
    )
    put(last[H100], held)
    a100 = first.get(A100)
    if a100 is not None:
        put(a100, (herd.sliced(A100, 0), herd.sliced(A100, 1), *herd.cards(A100, 6)))
    l40s = first.get(L40S)
    if l40s is not None:
        put(l40s, herd.cards(L40S, 4), Fault(function="nvmlDevice*", gpu=2, effect=15, active_from=6))
    rtx = last.get(RTX4090)
    if rtx is not None:
        put(rtx, herd.cards(RTX4090, 4), Fault(function="nvmlDevice*", effect="hang", active_from=12))
    spare = first.get(V100, first[H100])
    put(spare, herd.cards(names[spare][1], names[spare][2]), reports=4)
    if a100 is not None and last[A100] != a100:
        braked = structs.replace(
            herd.card(A100, 1), throttle_reasons=ThrottleReason.POWER_BRAKE, clock_sm_mhz=86
        )
        put(last[A100], (herd.card(A100, 0), braked, *herd.cards(A100, 8)[2:]), pulled=5)
