"""Many simulated nodes from one cheap process: real WebSocket connections, pre-encoded real frames.

Run as ``python -m bench.nodes``: reads a JSON ``Load`` from standard input, prints ``ready`` when all links are
welcomed, then sends until told to stop by end of input, and prints a JSON ``Sent`` at the end. Frames are encoded once;
per sample only its number, its time and one of a few value sets are exchanged, so that one core speaks for 10,000
nodes and the hub's cost can be read undisturbed on the other.
"""

from __future__ import annotations

import base64
import os
import random
import select
import socket
import struct
import sys
import time
from collections import deque
from collections.abc import Callable

import msgspec

from gpuherd.model.devices import DeviceFacts, DeviceSample
from gpuherd.model.hosts import Address, Disk, HostFacts, HostSample
from gpuherd.model.processes import Process, ProcessSample, ProcessTable, ProcessUse, UseSample
from gpuherd.model.reports import NodeFacts, Sample
from gpuherd.wire.codec import encode
from gpuherd.wire.frames import SUBPROTOCOL, FactsFrame, Hello, TableFrame
from gpuherd.wire.matrix import LAYOUT
from gpuherd.wire.reports import sample_to_frame

GIB = 2**30
FIRST_SEQ = 100_000
"""Numbers from here to 2³² take five bytes in msgpack, so that a frame's number can be written in place."""
VARIANTS = 8
WELCOME_SECONDS = 30.0
LAST_ACKS_SECONDS = 2.0


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """What to do: one node per credential, each sending ``rate`` samples a second for ``gpus`` devices."""

    host: str
    port: int
    path: str
    credentials: list[str]
    gpus: int = 8
    rate: float = 1.0
    cpu: int | None = None
    is_echo: bool = False


class Sent(msgspec.Struct, frozen=True, kw_only=True):
    """What was done.

    ``blocked`` samples could not be sent because the hub did not read; ``lost`` links were ended by it; ``unacked`` are
    the newest samples without an ack at the end. An ack's age is counted from sending the newest sample that it covers.
    """

    samples: int
    blocked: int
    lost: int
    received: int
    unacked: int
    ack_p50_seconds: float
    ack_p99_seconds: float
    worst_delay_seconds: float
    bytes_per_sample: int


def masked(payload: bytes) -> bytes:
    """Wrap a payload as one binary WebSocket message; the mask is zero, which leaves the payload as it is."""
    if len(payload) < 126:
        head = bytes([0x82, 0x80 | len(payload)])
    elif len(payload) < 65_536:
        head = bytes([0x82, 0x80 | 126]) + struct.pack(">H", len(payload))
    else:
        head = bytes([0x82, 0x80 | 127]) + struct.pack(">Q", len(payload))
    return head + b"\0\0\0\0" + payload


class Script:
    """The frames of one kind of node, ready to be sent by any number of them; ``wrap`` makes messages of frames."""

    def __init__(self, gpus: int, wrap: Callable[[bytes], bytes] = masked) -> None:
        self._wrap = wrap
        self.facts = NodeFacts(
            host=HostFacts(
                hostname="bench",
                cpu_count=128,
                memory_total_bytes=1024 * GIB,
                driver_version="580.95.05",
                addresses=(Address("eno1", "192.0.2.1"),),
                disks=(Disk(mount="/", total_bytes=2**41),),
            ),
            devices=tuple(
                DeviceFacts(
                    uuid=f"GPU-{number:08d}",
                    index=number,
                    name="NVIDIA H100 80GB HBM3",
                    memory_total_bytes=80 * GIB,
                )
                for number in range(gpus)
            ),
        )
        self.table = ProcessTable(
            processes=tuple(
                Process(
                    pid=1000 + n,
                    user=f"user{n:02}",
                    command="python train.py --config a.yaml",
                    started_at=1e9,
                )
                for n in range(gpus)
            ),
            uses=tuple(ProcessUse(process=n, device=n) for n in range(gpus)),
        )
        chance = random.Random(1)  # noqa: S311 - repeatable, not secret
        self.samples = [self._sample(chance) for _ in range(VARIANTS)]
        self.seq_offset = self.samples[0].index(b"\xa3seq\xce") + 5
        self.time_offset = self.samples[0].index(b"\xa4time\xcb") + 6

    def _sample(self, chance: random.Random) -> bytearray:
        sample = Sample(
            time=time.time(),
            host=HostSample(
                cpu_ratio=chance.random(), load_1m=20.0, memory_used_bytes=chance.randrange(900 * GIB)
            ),
            disks_used_bytes=(2**40,),
            devices=tuple(
                DeviceSample(
                    utilization_gpu=chance.random(),
                    utilization_memory=chance.random(),
                    utilization_encoder=0.0,
                    utilization_decoder=0.0,
                    memory_used_bytes=chance.randrange(80 * GIB),
                    memory_reserved_bytes=GIB,
                    temperature_celsius=float(chance.randrange(30, 80)),
                    power_watts=float(chance.randrange(100, 700)),
                    power_limit_watts=700.0,
                    clock_sm_hertz=1.98e9,
                    clock_memory_hertz=2.6e9,
                    performance_state=0,
                    throttle_reasons=0,
                    ecc_corrected=0,
                    ecc_uncorrected=0,
                    energy_joules=1e9,
                )
                for _ in self.facts.devices
            ),
            processes=tuple(ProcessSample(cpu_cores=1.0, memory_bytes=GIB) for _ in self.table.processes),
            uses=tuple(UseSample(gpu_memory_bytes=chance.randrange(79 * GIB)) for _ in self.table.uses),
        )
        frame = sample_to_frame(sample, seq=FIRST_SEQ, facts_revision=1, table_revision=1)
        return bytearray(self._wrap(encode(frame)))

    def opening(self, boot_id: str) -> bytes:
        """Give hello, facts and table as one piece of bytes."""
        hello = Hello(boot_id=boot_id, layout=LAYOUT, time=time.time(), interval_seconds=1.0)
        facts = FactsFrame(seq=FIRST_SEQ - 2, revision=1, facts=self.facts)
        table = TableFrame(seq=FIRST_SEQ - 1, revision=1, facts_revision=1, table=self.table)
        return b"".join(self._wrap(encode(frame)) for frame in (hello, facts, table))


def connect(load: Load, credential: str) -> socket.socket:
    """Open a WebSocket by hand."""
    link = socket.create_connection((load.host, load.port), timeout=WELCOME_SECONDS)
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    key = base64.b64encode(os.urandom(16)).decode()
    link.sendall(
        (
            f"GET {load.path} HTTP/1.1\r\nHost: {load.host}:{load.port}\r\nUpgrade: websocket\r\n"
            f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n"
            f"Sec-WebSocket-Protocol: {SUBPROTOCOL}\r\nAuthorization: Bearer {credential}\r\n\r\n"
        ).encode()
    )
    answer = b""
    while b"\r\n\r\n" not in answer:
        piece = link.recv(4096)
        if not piece:
            break
        answer += piece
    if b" 101 " not in answer.split(b"\r\n", 1)[0]:
        raise SystemExit(f"the hub refused the link: {answer[:200]!r}")
    return link


def run(load: Load) -> Sent:
    """Send until standard input ends."""
    script = Script(load.gpus)
    links = []
    for credential in load.credentials:
        link = connect(load, credential)
        if not load.is_echo:
            link.sendall(script.opening(os.urandom(8).hex()))
            if not link.recv(4096):
                raise SystemExit("the hub closed a link after its hello")
        link.setblocking(False)
        links.append(link)
    print("ready", flush=True)
    return Sender(load, script, links).run()


class Sender:
    """Sends the samples of all nodes and hears their acks."""

    def __init__(self, load: Load, script: Script, links: list[socket.socket]) -> None:
        self._script = script
        self._links = links
        self._place = {link.fileno(): place for place, link in enumerate(links)}
        self._period = 1.0 / load.rate
        self._seqs = [FIRST_SEQ] * len(links)
        self._sent_at = [0.0] * len(links)
        self._acked = [FIRST_SEQ - 1] * len(links)
        self._ack_ages: list[float] = []
        self._samples = self._blocked = self._received = 0
        self._lost: set[int] = set()
        self._worst = 0.0

    def run(self) -> Sent:
        """Send until standard input ends, then hear the last acks."""
        poll = select.epoll()
        for number in self._place:
            poll.register(number, select.EPOLLIN)
        stdin = sys.stdin.fileno()
        poll.register(stdin, select.EPOLLIN | select.EPOLLHUP)
        start, count = time.monotonic(), len(self._links)
        # Nodes report spread over the period, as they do in life.
        due = deque((start + self._period * place / count, place) for place in range(count))
        ends_at = None
        while ends_at is None or time.monotonic() < ends_at:
            while ends_at is None and due[0][0] <= time.monotonic():
                moment, place = due.popleft()
                self._send(place, moment)
                due.append((moment + self._period, place))
            for number, _ in poll.poll(
                max(0.0, min(0.05, due[0][0] - time.monotonic())) if ends_at is None else 0.05
            ):
                if number == stdin:
                    poll.unregister(stdin)
                    ends_at = time.monotonic() + LAST_ACKS_SECONDS
                elif not self._hear(number):
                    poll.unregister(number)
        return self._told()

    def _send(self, place: int, moment: float) -> None:
        if place in self._lost:
            return
        message = self._script.samples[self._seqs[place] % VARIANTS]
        struct.pack_into(">I", message, self._script.seq_offset, self._seqs[place])
        struct.pack_into(">d", message, self._script.time_offset, time.time())
        try:
            self._links[place].send(message)
        except BlockingIOError:
            self._blocked += 1
            return
        except ConnectionError:
            self._lost.add(place)
            return
        now = time.monotonic()
        self._worst = max(self._worst, now - moment)
        self._sent_at[place] = now
        self._samples += 1
        self._seqs[place] += 1

    def _hear(self, number: int) -> bool:
        place = self._place[number]
        try:
            data = self.received(self._links[place])
        except ConnectionError:
            data = b""
        if not data:
            self._lost.add(place)
            return False
        self._received += 1
        ack = data.rfind(b"\xa3seq\xce")
        if ack >= 0 and len(data) >= ack + 9:
            (seq,) = struct.unpack_from(">I", data, ack + 5)
            self._acked[place] = seq
            if seq == self._seqs[place] - 1 and seq >= FIRST_SEQ:
                self._ack_ages.append(time.monotonic() - self._sent_at[place])
        return True

    def received(self, link: socket.socket) -> bytes:
        """Take what a hub has sent; nothing if it is gone."""
        return link.recv(65_536)

    def _told(self) -> Sent:
        ages = sorted(self._ack_ages) or [float("nan")]
        return Sent(
            samples=self._samples,
            blocked=self._blocked,
            lost=len(self._lost),
            received=self._received,
            unacked=sum(seq - 1 - acked for seq, acked in zip(self._seqs, self._acked, strict=True)),
            ack_p50_seconds=ages[len(ages) // 2],
            ack_p99_seconds=ages[len(ages) * 99 // 100],
            worst_delay_seconds=self._worst,
            bytes_per_sample=len(self._script.samples[0]),
        )


def main() -> None:
    """Read the load, play it, tell what was done."""
    load = msgspec.json.decode(sys.stdin.buffer.readline(), type=Load)
    if load.cpu is not None:
        os.sched_setaffinity(0, {load.cpu})
    print(msgspec.json.encode(run(load)).decode(), flush=True)


if __name__ == "__main__":
    main()
