"""What the running hub says of a node, as steps: for nodes that come by themselves or must not be disturbed."""

from __future__ import annotations

import asyncio

from gpuherd.model.reports import Problem
from gpuherd.wiring.doctor.hub_api import HubApi, HubHealth, HubNode, NoHub
from gpuherd.wiring.doctor.judging import judge_clock, judge_reading
from gpuherd.wiring.doctor.steps import Journal, plural
from gpuherd.wiring.doctor.wording import age

__all__ = ["HubWord", "trouble_of"]

LONGEST_INTERVAL_SECONDS = 10.0
RECENT_SECONDS = 600.0
_NO_TROUBLE = frozenset({"unproven"})
_TELL_TIME = frozenset({"push", "pull", "ssh"})
_WAYS = {
    "push": "its agent connects to this hub",
    "pull": "this hub connects to its agent",
    "ssh": "over SSH",
    "file": "its files are read from a folder",
    "gpustat": "it posts gpustat's JSON",
    "node_info": "it responds like node_info.py",
    "xmlrpc": "it responds to XML-RPC",
    "http_files": "it serves the files of gpu-run.sh",
}
_REMEDIES = {
    "push": "run `gpuherd doctor` on that machine: it says whether its agent runs and reaches this hub",
    "file": "check that the scripts there still write their files, and that the copying or the mount works",
    "gpustat": "check that run-this-on-every-node.sh runs there and posts to the address in legacy.gpustat.listen",
}


def trouble_of(node: HubNode) -> Problem | None:
    """Give what the hub has against a node, if anything."""
    return next((note for note in node.notes if note.code not in _NO_TROUBLE), None)


class HubWord:
    """Tells a node by what the hub knows of it."""

    def __init__(self, api: HubApi, health: HubHealth, node: HubNode, journal: Journal) -> None:
        self._api = api
        self._health = health
        self._node = node
        self._journal = journal

    def tell_now(self) -> None:
        """Tell what is known without waiting for news."""
        self._contact()
        if self._node.received_at is not None:
            self.reading()

    async def tell(self) -> None:
        """Tell everything."""
        node = self._node
        self._contact()
        if node.received_at is None:
            self._journal.skip_all(["parse", "freshness", "clock"])
        else:
            self.reading()
            await self.freshness()
            self.clock()
        self._frames()

    def _contact(self) -> None:
        node, way = self._node, _WAYS.get(self._node.way, self._node.way)
        trouble = trouble_of(node)
        if node.state == "live" and trouble is None:
            self._journal.ok("contact", f"live: {way}; last report {age(node.age_seconds or 0.0)} ago")
            return
        if node.received_at is None:
            fact, reason = f"nothing yet: {way}", f"{node.name} is known to the hub but has never reported"
        else:
            silence = age(self._health.time - node.received_at)
            fact, reason = (
                f"{node.state}: {way}; last report {silence} ago",
                f"nothing has arrived from {node.name} for {silence}",
            )
        if trouble is not None:
            said = trouble.message
            if not said.startswith((node.id, node.name)):
                said = f"{node.name}: {said}"
            self._journal.failed("contact", f"{fact}; the hub reports a problem", said)
        else:
            remedy = _REMEDIES.get(node.way, "the hub's log says more")
            if node.way == "push":
                remedy += f", or, if it is gone for good, remove it with `gpuherd node remove {node.id}`"
            self._journal.failed("contact", fact, f"{reason}: {remedy}")

    def reading(self) -> None:
        """Tell what the last report holds."""
        gpus = len(self._node.devices)
        judge_reading(
            self._journal,
            "parse",
            self._node.name,
            fact=plural(gpus, "device"),
            gpus=gpus,
            problems=self._node.problems,
        )

    async def freshness(self) -> None:
        """Wait until the hub has got another report."""
        node, interval = self._node, self._node.interval_seconds or 0.0
        if node.state != "live" or interval > LONGEST_INTERVAL_SECONDS:
            why = f"it reports every {interval:g} s; not waited for" if node.state == "live" else ""
            self._journal.skipped("freshness", why)
            return
        patience = 2 * interval + 3.0
        try:
            async with asyncio.timeout(patience):
                while True:
                    await asyncio.sleep(0.2)
                    again = await self._api.node(node.id)
                    if again is not None and again.received_at != node.received_at:
                        break
        except TimeoutError:
            self._journal.failed(
                "freshness",
                "no new report",
                f"the hub has received nothing new from {node.name} for {patience:g} s, but every "
                f"{interval:g} s is expected: "
                f"{_REMEDIES.get(node.way, 'the node is overloaded or the network is slow')}",
            )
        except NoHub as error:
            self._journal.failed("freshness", "the hub is gone", f"the hub stopped responding: {error}")
        else:
            self._journal.ok("freshness", f"the hub gets new reports (every {interval:g} s)")

    def clock(self) -> None:
        """Judge the node's clock by the hub's measurement."""
        skew = self._node.clock_skew_seconds
        if skew is None or self._node.way not in _TELL_TIME:
            self._journal.skipped("clock", "it does not report its time")
        else:
            judge_clock(self._journal, skew, self._node.name, "the hub's")

    def _frames(self) -> None:
        """Tell what the hub refused of it."""
        node = self._node
        if node.id in self._health.links.flapping:
            self._journal.failed(
                "frames",
                "two machines replace each other",
                f"two machines share the credential of {node.name} (a disk was cloned?): enrol one of them again",
            )
            return
        frames = next((entry for entry in self._health.nodes if entry.node_id == node.id), None)
        if frames is None or not frames.refused:
            taken = "" if frames is None else f"{frames.accepted} accepted, none rejected"
            self._journal.ok("frames", taken or "none refused")
            return
        count = sum(frames.refused.values())
        reasons = ", ".join(f"{number} {code}" for code, number in frames.refused.items())
        fact = f"{frames.accepted} taken, {count} refused ({reasons})"
        is_recent = self._health.time - (frames.last_error_at or 0.0) < RECENT_SECONDS
        if is_recent:
            self._journal.failed(
                "frames",
                fact,
                f"the hub rejects the reports of {node.name}: {frames.last_error or reasons}; install the "
                "same version of gpuherd on both sides",
            )
        else:
            self._journal.ok("frames", f"{fact}, none lately")
