"""Walking the whole way to one listed node: from its name to the second report and its clock."""

from __future__ import annotations

import asyncio
import logging
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from gpuherd.auth.enrolment import node_id_for
from gpuherd.model.errors import Misconfigured, Refused
from gpuherd.model.targets import NodeWay, Target
from gpuherd.sources.following import ContactFailed, Way
from gpuherd.sources.settings import NodeInfoSettings, ReachSettings, SshSettings
from gpuherd.wiring.config import Config
from gpuherd.wiring.doctor.approach import login_fact, make_way, shown_key, take_accepted_keys
from gpuherd.wiring.doctor.blame import STAGES, broken_stage, in_few_words, with_remedy
from gpuherd.wiring.doctor.judging import judge_clock, judge_reading
from gpuherd.wiring.doctor.milestones import NodeRecorder
from gpuherd.wiring.doctor.network import address_fact, connect, resolve
from gpuherd.wiring.doctor.route import Route, find_route
from gpuherd.wiring.doctor.steps import Journal, StepFailed, plural
from gpuherd.wiring.ways.surroundings import located

__all__ = ["Walk", "way_of"]

log = logging.getLogger(__name__)

FIRST_REPORT_SECONDS = 90.0
"""Longer than the ways' own deadlines, whose words are better than ours."""
LONGEST_INTERVAL_SECONDS = 15.0
"""A node that is asked less often is not waited for a second time."""
_READS_SECONDS = {"node_info": 4.0, "http_files": 20.0}
"""How often older tools read their GPUs: asking more often brings nothing new."""
_TELL_TIME = frozenset({"ssh", "pull"})


def way_of(reach: ReachSettings) -> NodeWay:
    """Name the way that settings are for."""
    return reach.__struct_config__.tag  # type: ignore[return-value]


class Walk:
    """One node's way, step by step."""

    def __init__(
        self,
        config: Config,
        target: Target,
        reach: ReachSettings,
        journal: Journal,
        *,
        deadline_seconds: float = FIRST_REPORT_SECONDS,
        is_thorough: bool = True,
    ) -> None:
        """``is_thorough``: also look at the host key by itself, wait for a second report, judge the clock.

        ``Refused`` if the target's name cannot be a node's.
        """
        self._config = config
        self._target = target
        self._reach: ReachSettings = located(reach, config.folder)
        self._journal = journal
        self._deadline_seconds = deadline_seconds
        self._is_thorough = is_thorough
        self._way = way_of(reach)
        self._stages = STAGES[self._way]
        self._before = len(journal.steps)
        self._seconds: dict[str, float] = {}
        """How long stages took that are told later than they were looked at."""
        self._recorder = NodeRecorder(
            node_id_for(target.name), target.name, self._way, reach.interval_seconds
        )

    async def run(self) -> None:
        """Walk as far as possible; what lies behind a broken step is skipped."""
        with tempfile.TemporaryDirectory(prefix="gpuherd-doctor-") as scratch:
            accepted = take_accepted_keys(self._config.hub.state_dir, Path(scratch))
            await self._walk(accepted)
        names = ("resolve", "connect", *self._stages, *(("freshness", "clock") if self._is_thorough else ()))
        self._journal.skip_all([name for name in names if name not in self._told])

    def _fail(self, step: str, failure: ContactFailed) -> None:
        remedy = with_remedy(self._way, failure.code, str(failure))
        self._journal.failed(step, in_few_words(failure.code), remedy)

    @property
    def _told(self) -> list[str]:
        return [step.name for step in self._journal.steps[self._before :]]

    async def _walk(self, accepted: Path) -> None:
        step = "resolve"
        try:
            route = await find_route(self._target, self._reach, accepted)
            addresses = await self._resolve(route)
            step = "connect"
            await self._connect(route, addresses)
            step = self._stages[0]
            await self._follow(route, accepted)
        except StepFailed as failed:
            self._journal.failed(step, failed.fact, failed.remedy)
        except ContactFailed as failure:
            self._fail(step, failure)
        except Misconfigured as error:
            self._journal.failed(step, "misconfigured", str(error))

    # -- to the port -----------------------------------------------------------------------------------------------

    async def _resolve(self, route: Route) -> list[str]:
        note = f" ({route.note})" if route.note else ""
        if route.is_by_command:
            self._journal.skipped("resolve", "a ProxyCommand makes the connection")
            return []
        addresses = await resolve(route.host, self._target.place or "the list")
        self._journal.ok("resolve", address_fact(route.host, addresses) + note)
        return addresses

    async def _connect(self, route: Route, addresses: Sequence[str]) -> None:
        if route.is_by_command:
            self._journal.skipped("connect", "a ProxyCommand makes the connection")
            return
        address = await connect(addresses, route.port, route.remedy)
        self._journal.ok("connect", f"{address} port {route.port} accepts connections")

    # -- to the first report ---------------------------------------------------------------------------------------

    async def _follow(self, route: Route, accepted: Path) -> None:
        key = ""
        if self._is_thorough and isinstance(self._reach, SshSettings):
            started = time.monotonic()
            key = await shown_key(self._target, self._reach, accepted)
            self._seconds["key"] = time.monotonic() - started
        way = make_way(self._reach, self._recorder, self._config, accepted)
        async with _following(way, self._target, self._recorder) as task:
            if not await self._first_report(task, self._facts(route, key)):
                return
            if self._is_thorough:
                await self._freshness(task)
                self._clock()

    def _facts(self, route: Route, key: str) -> dict[str, str]:
        """Say what is to be told of the stages before the report when they work."""
        if route.login is not None:
            return {
                "key": key or "the host key is known",
                "login": login_fact(route.login),
                "command": "the script runs",
            }
        if self._way == "pull":
            tls = "TLS is verified and " if getattr(self._reach, "is_tls", False) else ""
            key = f"{tls}both sides have proved that they know the node's secret"
        elif isinstance(self._reach, NodeInfoSettings) and self._reach.password_file is None:
            key = "it accepts the default password from the tool's README: change it"
        else:
            key = "the password is correct"
        return {"key": key, "answer": "it answers"}

    async def _first_report(self, task: asyncio.Task[None], facts: dict[str, str]) -> bool:
        """Tell the stages as they are reached; whether a report came."""
        milestones = self._recorder.milestones
        due = asyncio.get_running_loop().time() + self._deadline_seconds
        if "key" not in self._stages:
            self._journal.skipped("key", "this protocol has no credentials")
        for position, stage in enumerate(self._stages):
            proof = frozenset(self._stages[position:])  # whoever got further has passed this one, too
            try:
                async with asyncio.timeout_at(due):
                    is_reached = await milestones.until(proof, task)
            except TimeoutError:
                self._too_late(stage)
                return False
            if not is_reached:
                self._broken(facts, _why(task, self._target.name))
                return False
            if stage != "parse":
                self._passed(stage, facts)
        self._parsed()
        return True

    def _passed(self, stage: str, facts: dict[str, str]) -> None:
        fact = self._recorder.milestones.facts.get(stage) or facts[stage]
        self._journal.ok(stage, fact, self._seconds.get(stage))

    def _broken(self, facts: dict[str, str], failure: ContactFailed) -> None:
        """Tell which stage failed; those before it that were not told yet have worked."""
        if self._recorder.refusal is not None:
            failure = ContactFailed("garbled", f"{self._target.name}: {self._recorder.refusal}")
        stages, told = self._stages, self._told
        at = broken_stage(self._way, failure.code, str(failure), [name for name in stages if name in told])
        for stage in stages[: stages.index(at)]:
            if stage not in told:
                self._passed(stage, facts)
        self._fail(at, failure)

    def _too_late(self, stage: str) -> None:
        name = self._target.name
        remedy = (
            "a command on it hangs: look for processes in state D there"
            if self._is_thorough
            else f"it is slow, or a command on it hangs: `gpuherd doctor {name}` waits longer"
        )
        self._journal.failed(
            stage, "no report in time", f"{name}: no report within {self._deadline_seconds:g} s; {remedy}"
        )

    def _parsed(self) -> None:
        view = self._recorder.view()
        gpus = sum(device.facts.kind == "gpu" for device in view.devices)
        processes = {process.pid for device in view.devices for process in device.processes}
        judge_reading(
            self._journal,
            "parse",
            self._target.name,
            fact=f"{plural(gpus, 'GPU')}, {plural(len(processes), 'process')}",
            gpus=gpus,
            problems=view.problems,
            expected_gpus=self._target.expected_gpus,
        )

    # -- after it --------------------------------------------------------------------------------------------------

    async def _freshness(self, task: asyncio.Task[None]) -> None:
        interval, arrived = self._reach.interval_seconds, self._recorder.arrived_at
        if interval > LONGEST_INTERVAL_SECONDS:
            self._journal.skipped("freshness", f"it is polled every {interval:g} s; not waited for")
            return
        patience = 2 * max(interval, _READS_SECONDS.get(self._way, 0.0)) + 3.0
        try:
            async with asyncio.timeout(patience):
                is_fresh = await self._recorder.milestones.until({"report 2"}, task)
        except TimeoutError:
            self._journal.failed(
                "freshness",
                "no second report",
                f"{self._target.name}: a first report came but no second within {patience:g} s, although "
                f"it is polled every {interval:g} s; the node is overloaded or a command hangs; check "
                "`uptime` and `nvidia-smi` there",
            )
            return
        if is_fresh:
            gap = arrived[1] - arrived[0]
            self._journal.ok(
                "freshness", f"the next report came after {gap:.1f} s (polled every {interval:g} s)"
            )
        else:
            self._fail("freshness", _why(task, self._target.name))

    def _clock(self) -> None:
        skews = self._recorder.skews_seconds
        if self._way not in _TELL_TIME or not skews:
            self._journal.skipped("clock", "it does not report its time")
            return
        # A report is late by the time that its commands took: the largest value is the nearest.
        skew = max(skews)
        if skew < 0 and any(problem.code == "driver_hung" for problem in self._recorder.view().problems):
            self._journal.skipped("clock", "unknown while commands hang")
            return
        judge_clock(self._journal, skew, self._target.name)


def _why(task: asyncio.Task[None], name: str) -> ContactFailed:
    error = task.exception()
    if isinstance(error, ContactFailed):
        return error
    if isinstance(error, Refused | Misconfigured):
        return ContactFailed("garbled", f"{name}: {error}")
    if error is not None:
        log.error("unexpected error while checking %s", name, exc_info=error)
        return ContactFailed(
            "fault_of_gpuherd",
            f"{name}: {type(error).__name__} during the check; this is a bug in gpuherd",
        )
    return ContactFailed("link_lost", f"{name}: the connection has ended")


@asynccontextmanager
async def _following(way: Way, target: Target, recorder: NodeRecorder) -> AsyncIterator[asyncio.Task[None]]:
    """Follow a node in a task of its own, which is ended whatever happens."""
    task = asyncio.create_task(way.follow(target, recorder))
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await way.close()
