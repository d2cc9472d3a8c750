"""POST /get-status as the older HTTP tool's ``node_info.py`` answers it, on a port of its own: for its main node.

The password crosses the network in clear text; that is the old protocol. So the port is off until configured, answers
listed networks only, and lets nobody guess for long.
"""

from __future__ import annotations

import hmac
import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from datetime import UTC, datetime

import msgspec
from msgspec import Struct

from gpuherd.agent.door import Door, Visit
from gpuherd.agent.enrol import read_secret
from gpuherd.agent.listen_address import ListenAddress, Networks
from gpuherd.agent.requests import BadRequest, Request, Response
from gpuherd.agent.said import SaidOnce
from gpuherd.agent.settings import AgentSettings
from gpuherd.model.errors import Misconfigured
from gpuherd.model.reports import Report
from gpuherd.wire.node_info import node_info

__all__ = ["DEFAULT_PORT", "Guesses", "NodeInfoPort"]

log = logging.getLogger(__name__)

DEFAULT_PORT = 7080
DEFAULT_PASSWORD = "8888"  # noqa: S105 - the old tool's, known to everyone


class _Asked(Struct, frozen=True):
    passwd: str


class NodeInfoPort:
    """Answers the old tool's main node."""

    def __init__(
        self,
        settings: AgentSettings,
        *,
        latest: Callable[[], Report | None],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Check the settings; ``Misconfigured`` names the key."""
        if settings.node_info_password_file is None:
            raise Misconfigured(
                "agent.node_info_password_file: is required with agent.node_info_listen; put the password "
                "that the old main node sends into a file"
            )
        address = ListenAddress.parse("agent.node_info_listen", settings.node_info_listen or "", DEFAULT_PORT)
        self._password = read_secret(settings.node_info_password_file, "password")
        self._networks = Networks("agent.node_info_networks", settings.node_info_networks)
        self._guesses = Guesses(monotonic=monotonic)
        self._latest = latest
        self._said = SaidOnce(log, monotonic)
        self.door = Door(address, self._serve, monotonic=monotonic)

    async def run(self) -> None:
        """Listen until cancelled; ``Misconfigured`` if the address cannot be had."""
        log.warning(
            "serving the older tool's POST /get-status on %s: its password can be read on the network%s",
            self.door.address,
            "" if self._password != DEFAULT_PASSWORD else ", and is the old tool's well-known default",
        )
        await self.door.run()

    async def _serve(self, visit: Visit, request: Request) -> None:
        if not self._networks.include(visit.address):
            self._said.say(
                logging.WARNING,
                f"{visit.address} requested the status, but is not in any network of {self._networks.key}",
            )
            raise BadRequest(403, f"{visit.address} is not in any network of {self._networks.key}")
        if request.path != "/get-status":
            raise BadRequest(404, "only /get-status is served here")
        if request.method != "POST":
            raise BadRequest(405, "only POST is supported here")
        if self._guesses.are_too_many(visit.address):
            raise BadRequest(429, "too many wrong passwords; wait a minute")
        self._check(visit.address, await visit.body(request))
        report = self._latest()
        if report is None:
            raise BadRequest(503, "no data yet; try again in a moment")
        answer = node_info(report, _local_time(report.sample.time))
        await visit.answer(
            Response(status=200, body=msgspec.json.encode(answer), content_type="application/json")
        )

    def _check(self, address: str, body: bytes) -> None:
        """Refuse with plain text: the old main node takes any JSON for a status, and an answer without for "down"."""
        try:
            asked = msgspec.json.decode(body, type=_Asked)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise BadRequest(400, 'send JSON: {"passwd": "…"}') from error
        if not hmac.compare_digest(asked.passwd.encode("utf-8", "surrogatepass"), self._password.encode()):
            self._guesses.note(address)
            self._said.say(logging.WARNING, f"{address} requested the status with a wrong password")
            raise BadRequest(403, "the password is wrong")


class Guesses:
    """Wrong passwords by address, in bounded memory; the longest unseen addresses are forgotten first."""

    def __init__(
        self,
        *,
        most: int = 10,
        window_seconds: float = 60.0,
        most_addresses: int = 256,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._most = most
        self._window_seconds = window_seconds
        self._most_addresses = most_addresses
        self._monotonic = monotonic
        self._wrong: OrderedDict[str, list[float]] = OrderedDict()

    def note(self, address: str) -> None:
        """Count a wrong password."""
        times = self._wrong.setdefault(address, [])
        times.append(self._monotonic())
        del times[: -self._most]
        self._wrong.move_to_end(address)
        while len(self._wrong) > self._most_addresses:
            self._wrong.popitem(last=False)

    def are_too_many(self, address: str) -> bool:
        """Whether an address has to wait before its next try."""
        times = self._wrong.get(address, [])
        return len(times) >= self._most and self._monotonic() - times[0] < self._window_seconds


def _local_time(timestamp: float) -> str:
    return datetime.fromtimestamp(timestamp, UTC).astimezone().replace(tzinfo=None).isoformat()
