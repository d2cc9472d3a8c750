"""Which GPUs are left alone because they hung or crashed the driver, since when, and when to try them again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from msgspec import Struct

from gpuherd.agent.exchange import Skip
from gpuherd.agent.marker import Position
from gpuherd.model.devices import DeviceFacts
from gpuherd.model.reports import Problem
from gpuherd.model.text import SENTENCE_LENGTH, clean

__all__ = ["FIRST_RETRY_SECONDS", "LONGEST_RETRY_SECONDS", "WHOLE_DRIVER", "Ban", "Quarantine"]

FIRST_RETRY_SECONDS = 10.0
LONGEST_RETRY_SECONDS = 40.0
"""A GPU that was repaired is back within a minute, the start of a probe included."""
FORGET_SECONDS = 3600.0
"""A GPU that was well for so long starts again with the shortest retry."""

BanCode = Literal["driver_hung", "driver_crashed"]
WHOLE_DRIVER = -1


class Ban(Struct, frozen=True, kw_only=True):
    """One GPU of one collector (or with ``device`` -1 the whole driver) that is not to be touched.

    ``since`` is node time, for people; the others are monotonic seconds.
    """

    collector: str
    device: int
    code: BanCode
    call: str
    since: float
    retry_at: float


class Quarantine:
    """All bans of a node. Times are given by the caller."""

    def __init__(self) -> None:
        self._bans: dict[tuple[str, int], Ban] = {}
        self._failures: dict[tuple[str, int], tuple[int, float]] = {}

    def __iter__(self) -> Iterator[Ban]:
        return iter(self._bans.values())

    def __len__(self) -> int:
        return len(self._bans)

    def has(self, position: Position) -> bool:
        """Whether the GPU at this position is banned."""
        return (position.collector, position.device) in self._bans

    def ban(self, position: Position, code: BanCode, *, now: float, node_time: float) -> Ban:
        """Ban a GPU, or after a failed retry ban it for longer; its ``since`` stays that of the first time."""
        key = (position.collector, position.device)
        count, last = self._failures.get(key, (0, now))
        count = 1 if now - last > FORGET_SECONDS else count + 1
        self._failures[key] = (count, now)
        # The exponent is capped so that years of failures do not overflow a float.
        wait = min(FIRST_RETRY_SECONDS * 2 ** min(count - 1, 16), LONGEST_RETRY_SECONDS)
        known = self._bans.get(key)
        ban = Ban(
            collector=position.collector,
            device=position.device,
            code=code,
            call=clean(position.call, 60),
            since=node_time if known is None else known.since,
            retry_at=now + wait,
        )
        self._bans[key] = ban
        return ban

    def prolong(self, bans: Iterable[Ban], *, now: float) -> None:
        """Count a failed retry against these bans."""
        for ban in bans:
            self.ban(Position(ban.collector, ban.device, ban.call), ban.code, now=now, node_time=ban.since)

    def lift(self, bans: Iterable[Ban]) -> None:
        """The GPUs answered: read them again."""
        for ban in bans:
            self._bans.pop((ban.collector, ban.device), None)

    def due(self, now: float) -> tuple[Ban, ...]:
        """The bans whose retry time has come."""
        return tuple(ban for ban in self if ban.retry_at <= now)

    def whole_driver(self) -> tuple[Ban, ...]:
        """The bans that concern no single GPU."""
        return tuple(ban for ban in self if ban.device == WHOLE_DRIVER)

    def skips(self, *, retried: Iterable[Ban] = ()) -> tuple[Skip, ...]:
        """The GPUs that a probe must not touch, except those it is to try again."""
        tried = {(ban.collector, ban.device) for ban in retried}
        return tuple(
            Skip(*key) for key, ban in self._bans.items() if ban.device != WHOLE_DRIVER and key not in tried
        )

    def kept(self, devices: Iterable[DeviceFacts], *, retried: Iterable[Ban] = ()) -> tuple[DeviceFacts, ...]:
        """The known facts of the GPUs that are skipped, and of their slices."""
        indices = {skip.device for skip in self.skips(retried=retried)}
        gpus = {device.uuid for device in devices if device.kind == "gpu" and device.index in indices}
        return tuple(device for device in devices if device.uuid in gpus or device.parent_uuid in gpus)

    def problems(self, devices: Iterable[DeviceFacts], *, retried: Iterable[Ban] = ()) -> tuple[Problem, ...]:
        """What to say of every ban, except those being tried again: one problem for each GPU and slice concerned."""
        tried = {(ban.collector, ban.device) for ban in retried}
        found = []
        for ban in self:
            if (ban.collector, ban.device) in tried:
                continue
            uuids: list[str | None] = [None]
            if ban.device != WHOLE_DRIVER:
                gpus = {d.uuid for d in devices if d.kind == "gpu" and d.index == ban.device}
                uuids = [d.uuid for d in devices if d.uuid in gpus or d.parent_uuid in gpus] or [None]
            # A fault that names no device is one of the whole node; a GPU nobody knows must not cast that shadow.
            found += [_problem(ban, uuid, ban.device == WHOLE_DRIVER or uuid is not None) for uuid in uuids]
        return tuple(found)


def _problem(ban: Ban, uuid: str | None, is_fault: bool) -> Problem:
    what = "hangs" if ban.code == "driver_hung" else "crashed"
    where = "" if ban.device == WHOLE_DRIVER else f" on GPU {ban.device}"
    text = (
        f"the driver {what} in {ban.call or 'a call'}{where}; the agent retries from time to time. If this "
        "persists, look for Xid or NVRM lines in `dmesg`, then reset the GPU or reboot"
    )
    return Problem(
        code=ban.code,
        message=clean(text, SENTENCE_LENGTH),
        device_uuid=uuid,
        is_fault=is_fault,
        since=max(ban.since, 0.0),
    )
