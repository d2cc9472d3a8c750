"""What nodes said, as history takes it: samples and greetings, in the order in which they came."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from gpuherd.fleet.scene import Scene
from gpuherd.history.batch import FrameMark, Unsampled
from gpuherd.wire.frames import SampleFrame

__all__ = ["Gathered", "Greeting", "Taken"]


@dataclass(slots=True, eq=False)
class Taken:
    """A sample as it was taken."""

    scene: Scene
    frame: SampleFrame
    received: float
    """Wall clock; only of a live sample, as are the next two."""
    monotonic: float
    age_seconds: float
    """How old it may have been when it came."""
    is_live: bool
    """Of right now; else it is history."""
    interval_seconds: float = 1.0
    """Interval of the samples at that time."""
    states: bytes = b""
    """What the tick after it found its devices to be; empty: not judged."""


class Greeting(NamedTuple):
    """A hello: what time it was on the node."""

    node_id: str
    time: float
    received: float
    monotonic: float
    round_trip_seconds: float
    """Time between the hub's previous message and the hello; infinite: unknown."""


class Gathered(NamedTuple):
    """What came between two writes."""

    taken: list[Taken | Greeting]
    marks: list[FrameMark]
    wall: float
    unsampled: tuple[Unsampled, ...] = ()
