"""Keeps a probe at work, whatever the driver does: one report a tick, and never more probes than needed.

There is at most one *live* probe, which is asked each tick, and one *trial*, a fresh probe that has yet to prove
itself. When the live probe hangs or dies it is killed, the GPU it was asking is put in quarantine and a trial
without that GPU starts; if the trial does not answer soon, a probe without any GPU collector takes over so that the
host is still seen. A trial that answers becomes the live probe. Quarantined GPUs are tried again, by a trial, while
the live probe goes on. As long as a killed probe is not gone (stuck in the kernel) no further GPU probe starts.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

import msgspec

from gpuherd.agent.exchange import Orders, Reading
from gpuherd.agent.marker import Position
from gpuherd.agent.probe_process import KillGroup, Probe, ProbeLost, signal_group
from gpuherd.agent.quarantine import WHOLE_DRIVER, Ban, Quarantine
from gpuherd.agent.spec import ProbeSpec
from gpuherd.model.devices import DeviceFacts
from gpuherd.model.errors import Failed
from gpuherd.model.reports import Problem
from gpuherd.model.text import SENTENCE_LENGTH, clean

__all__ = ["ProbeWatch"]

log = logging.getLogger(__name__)

KILL_PATIENCE_SECONDS = 2.0
"""How long a killed probe may take to be gone; after that it is stuck in the kernel."""
TRIAL_PATIENCE_SECONDS = 2.0
"""How long a report waits for a fresh probe before the host is reported without its GPUs."""
FRESH_START_SECONDS = 30.0
"""How often a new probe is tried while the driver's library does not match: a process keeps the library it loaded."""
MOST_LOSSES_IN_A_ROW = 3
"""So many probes lost without a reading between them, and it is the driver, not single GPUs."""
LONGEST_RESTART_SECONDS = 60.0


class ProbeWatch:
    """Gives readings for ever. ``read`` and ``stop`` are called by one task."""

    def __init__(
        self,
        spec: ProbeSpec,
        *,
        deadline_seconds: float,
        devices: tuple[DeviceFacts, ...] = (),
        kill_group: KillGroup = signal_group,
        monotonic: Callable[[], float] = time.monotonic,
        node_time: Callable[[], float] = time.time,
    ) -> None:
        self._spec = spec
        self._deadline_seconds = deadline_seconds
        self._kill_group = kill_group
        self._monotonic = monotonic
        self._node_time = node_time
        self.devices = devices
        """The last known devices; kept over restarts by the caller."""
        self.quarantine = Quarantine()
        self.trouble: str | None = None
        """Why there is no reading, if there is none."""
        self._live: Probe | None = None
        self._trial: Probe | None = None
        self._trial_asking: asyncio.Task[Reading] | None = None
        self._trial_trouble: str | None = None
        self._retried: tuple[Ban, ...] = ()
        self._stuck: list[Probe] = []
        self._stuck_call = ""
        self._stuck_since = 0.0
        self._retiring: dict[asyncio.Task[None], Probe] = {}
        self._losses_in_a_row = 0
        self._ends_in_a_row = 0
        self._last_end_at = self._restart_at = self._next_trial_at = float("-inf")
        self._fresh_start_at: float | None = None
        self._has_read = False

    @property
    def probe_pids(self) -> tuple[int, ...]:
        """The probes that exist, stuck ones included."""
        probes = (self._live, self._trial, *self._stuck)
        return tuple(probe.pid for probe in probes if probe is not None)

    async def read(self) -> Reading | None:
        """Make one reading; ``None`` when not even the host could be read (``trouble`` says why).

        Takes as long as the deadline (and a little) when a probe hangs. ``Misconfigured`` if the probe can never
        work as ordered.
        """
        self._bury()
        for _ in range(2):
            self._begin_trial()
            reading = await self._finish_trial()
            if reading is None:
                if self._live is None and not self._begin_host_only():
                    return None
                reading = await self._ask_live()
            if reading is not None:
                self._learn(reading)
                return reading
            if self._live is not None:
                return None  # it is well but could not read; asking again at once would not help
        return None

    async def stop(self) -> None:
        """End all probes."""
        if self._trial_asking is not None:
            self._trial_asking.cancel()
            await asyncio.gather(self._trial_asking, return_exceptions=True)
        retiring = dict(self._retiring)
        for task in retiring:
            task.cancel()
        await asyncio.gather(*retiring, return_exceptions=True)
        candidates = (self._live, self._trial, *self._stuck, *retiring.values())
        probes = [probe for probe in candidates if probe is not None and not probe.is_released]
        self._live = self._trial = self._trial_asking = None
        self._stuck = []
        for probe in probes:
            probe.kill()
        for probe in probes:
            if not await probe.gone(KILL_PATIENCE_SECONDS):
                log.warning("the collector process %d does not exit; leaving it running", probe.pid)
            probe.release()

    # --- starting -----------------------------------------------------------------------------------------------

    def _begin_trial(self) -> None:
        now = self._monotonic()
        if self._trial is not None or self._stuck or not self._spec.collectors:
            return
        if now < max(self._restart_at, self._next_trial_at):
            return
        due = self.quarantine.due(now)
        if self._live is not None and self._live.has_gpus:
            if not due and (self._fresh_start_at is None or now < self._fresh_start_at):
                return
            self._fresh_start_at = None
        elif any(ban not in due for ban in self.quarantine.whole_driver()):
            return
        self._retried = due
        orders = Orders(
            spec=self._spec,
            skips=self.quarantine.skips(retried=due),
            kept=self.quarantine.kept(self.devices, retried=due),
            remembered=self.devices,
            problems=self.quarantine.problems(self.devices, retried=due),
        )
        self._trial = self._spawn(orders)
        if self._trial is not None:
            self._trial_asking = asyncio.create_task(self._try(self._trial))

    def _begin_host_only(self) -> bool:
        if self._monotonic() < self._restart_at or any(not probe.has_gpus for probe in self._stuck):
            return False
        spec = msgspec.structs.replace(self._spec, collectors=())
        self._live = self._spawn(Orders(spec=spec, kept=self.devices, remembered=self.devices))
        return self._live is not None

    def _why_no_gpus(self) -> tuple[Problem, ...]:
        if not self._spec.collectors or self.quarantine.whole_driver():
            return ()
        if self._stuck:
            text = (
                f"the driver hangs in {self._stuck_call}: a probe (pid {self._stuck[0].pid}) is stuck in "
                "the kernel and cannot be stopped. The GPUs of this node are not read until it exits; you "
                "may have to reboot"
            )
            return (
                Problem(
                    code="driver_hung",
                    message=clean(text, SENTENCE_LENGTH),
                    is_fault=True,
                    since=self._stuck_since,
                ),
            )
        if self._trial_trouble is not None:
            text = f"the GPUs cannot be read: {self._trial_trouble}"
            return (Problem(code="driver_failed", message=clean(text, SENTENCE_LENGTH), is_fault=True),)
        return (Problem(code="gpus_pending", message="the GPUs are being opened; there is no data yet"),)

    def _spawn(self, orders: Orders) -> Probe | None:
        try:
            return Probe(orders, kill_group=self._kill_group)
        except OSError as error:
            self._ended(f"cannot start a probe: {error}; check the limits on processes and open files")
            return None

    # --- asking -------------------------------------------------------------------------------------------------

    async def _try(self, trial: Probe) -> Reading:
        try:
            return await trial.ask(self._deadline_seconds)
        except ProbeLost:
            # At once, not at the next tick: it may hold a lock in the driver that the live probe waits for.
            trial.kill()
            raise

    async def _finish_trial(self) -> Reading | None:
        """Take the trial's answer if it is there, or soon will be and there is nobody else to ask."""
        trial, asking = self._trial, self._trial_asking
        if trial is None or asking is None:
            return None
        is_old = asking.done()
        if not is_old and self._live is None:
            # The very first probe gets all the time it needs: before it there is nothing to say.
            await asyncio.wait({asking}, timeout=TRIAL_PATIENCE_SECONDS if self._has_read else None)
        if not asking.done():
            return None
        self._trial = self._trial_asking = None
        try:
            reading = asking.result()
        except ProbeLost as lost:
            await self._lost(trial, lost, is_trial=True)
            return None
        except Failed as failed:
            self._trial_trouble = str(failed)
            self.quarantine.prolong(self._retried, now=self._monotonic())
            self._retire(trial)
            self._next_trial_at = self._monotonic() + FRESH_START_SECONDS
            return None
        if self._live is not None and self._live.has_gpus and _is_mismatch(reading):
            self._retire(trial)  # no better than what we have
            self._fresh_start_at = self._monotonic() + FRESH_START_SECONDS
            return None
        if self._retried:
            log.info("these GPUs respond again: %s", _names(self._retried))
            self.quarantine.lift(self._retried)
        if self._live is not None:
            self._retire(self._live)
        self._live = trial
        return await self._newer(reading) if is_old else reading

    async def _newer(self, first: Reading) -> Reading | None:
        """Ask the live probe again: its first answer may be an interval old, and older than one that was sent since.

        Facts and table come with the first answer only.
        """
        newer = await self._ask_live()
        if newer is None:
            return None if self._live is None else first
        if newer.facts is None or newer.table is None:
            newer = msgspec.structs.replace(
                newer, facts=newer.facts or first.facts, table=newer.table or first.table
            )
        return newer

    async def _ask_live(self) -> Reading | None:
        live = self._live
        if live is None:
            return None
        # While a trial is at work the driver may be blocked by it: the trial has to go first.
        deadline_seconds = self._deadline_seconds * (1 if self._trial is None else 2)
        problems = None
        if not live.has_gpus:
            problems = self.quarantine.problems(self.devices) + self._why_no_gpus()
        try:
            return await live.ask(deadline_seconds, problems)
        except ProbeLost as lost:
            self._live = None
            await self._lost(live, lost, is_trial=False)
        except Failed as failed:
            self.trouble = str(failed)
        return None

    def _learn(self, reading: Reading) -> None:
        self.trouble = None
        self._has_read = True
        live = self._live
        if live is None or not live.has_gpus:
            return
        self._losses_in_a_row = 0
        self._trial_trouble = None
        if reading.facts is not None:
            self.devices = reading.facts.devices
        if not _is_mismatch(reading):
            self._fresh_start_at = None
        elif self._fresh_start_at is None:
            self._fresh_start_at = self._monotonic() + FRESH_START_SECONDS

    # --- losing -------------------------------------------------------------------------------------------------

    async def _lost(self, probe: Probe, lost: ProbeLost, *, is_trial: bool) -> None:
        """A probe hangs or is dead: find out what to leave alone, and see that it goes."""
        log.warning("lost the collector process %d: %s", probe.pid, lost)
        await self._end(probe, lost.position.call)
        if lost.loss == "ended" or not lost.position.collector:
            self._ended(f"the probe was lost while reading the host: {lost}")
        elif is_trial and self._live is not None and self._live.has_gpus:
            # All was well without the GPUs that were being tried again: they are to blame, wherever it stopped.
            self.quarantine.prolong(self._retried, now=self._monotonic())
        else:
            self._losses_in_a_row += 1
            self._blame(lost)

    def _blame(self, lost: ProbeLost) -> None:
        position = lost.position
        is_retried = any(
            (b.collector, b.device) == (position.collector, position.device) for b in self._retried
        )
        if (
            self._losses_in_a_row > MOST_LOSSES_IN_A_ROW
            or (self.quarantine.has(position) and not is_retried)  # it hangs even when the GPU is left alone
        ):
            position = Position(position.collector, WHOLE_DRIVER, position.call)
        now = self._monotonic()
        ban = self.quarantine.ban(
            position,
            "driver_hung" if lost.loss == "hung" else "driver_crashed",
            now=now,
            node_time=self._node_time(),
        )
        log.error(
            "%s in %s: not reading %s for %.0f s",
            ban.code,
            ban.call,
            "all GPUs are" if ban.device == WHOLE_DRIVER else f"GPU {ban.device} is",
            ban.retry_at - now,
        )

    def _ended(self, why: str) -> None:
        """A probe ended for a reason outside of the driver: start again, each time a little later."""
        now = self._monotonic()
        self._ends_in_a_row = (
            1 if now - self._last_end_at > 2 * LONGEST_RESTART_SECONDS else self._ends_in_a_row + 1
        )
        self._last_end_at = now
        wait = (
            0.0
            if self._ends_in_a_row == 1
            else min(2.0 ** (self._ends_in_a_row - 2), LONGEST_RESTART_SECONDS)
        )
        self._restart_at = now + wait
        self.trouble = why
        log.warning("%s; starting a new collector process in %.0f s", why, wait)

    async def _end(self, probe: Probe, call: str) -> None:
        """Kill a probe; one that stays is remembered as stuck."""
        probe.kill()
        if await probe.gone(KILL_PATIENCE_SECONDS):
            probe.release()
            return
        log.error(
            "cannot kill the collector process %d: it is stuck in the kernel in %s; check the driver (dmesg)",
            probe.pid,
            call or "its start",
        )
        probe.hang_up()
        self._stuck.append(probe)
        self._stuck_call = clean(call, 60) or "its start"
        self._stuck_since = self._node_time()

    def _retire(self, probe: Probe) -> None:
        """Let a healthy probe end by itself."""

        async def retire() -> None:
            probe.hang_up()
            if await probe.gone(KILL_PATIENCE_SECONDS):
                probe.release()
            else:
                await self._end(probe, "close")

        task = asyncio.create_task(retire())
        self._retiring[task] = probe
        task.add_done_callback(lambda done: self._retiring.pop(done, None))

    def _bury(self) -> None:
        """Forget the stuck probes that are gone at last."""
        for probe in [probe for probe in self._stuck if probe.is_gone()]:
            log.info("the stuck collector process %d has ended", probe.pid)
            self._stuck.remove(probe)
            probe.release()


def _is_mismatch(reading: Reading) -> bool:
    return any(problem.code == "driver_mismatch" for problem in reading.sample.problems)


def _names(bans: tuple[Ban, ...]) -> str:
    return ", ".join("the driver" if ban.device == WHOLE_DRIVER else f"GPU {ban.device}" for ban in bans)
