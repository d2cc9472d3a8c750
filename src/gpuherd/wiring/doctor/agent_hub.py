"""This machine as a node: is its agent running, does it reach its hub, does the hub know it."""

from __future__ import annotations

import base64
import http.client
import os
import ssl
import time
from pathlib import Path

import msgspec

from gpuherd.agent.address import HubAddress
from gpuherd.agent.enrol import HOW_TO_ENROL, check_shown_to, read_secret
from gpuherd.agent.listen import DEFAULT_PORT
from gpuherd.agent.listen_address import ListenAddress
from gpuherd.agent.refusals import HandshakeRefused, hub_code, refusal
from gpuherd.agent.settings import AgentSettings
from gpuherd.agent.tls import tls_context
from gpuherd.model.errors import Misconfigured
from gpuherd.model.text import clean
from gpuherd.wire.frames import SUBPROTOCOL
from gpuherd.wiring.config import default_state_dir
from gpuherd.wiring.doctor.asking import Answer, HttpPlace, ask
from gpuherd.wiring.doctor.certificates import certificate_failure
from gpuherd.wiring.doctor.files import is_there, may_be_looked_into
from gpuherd.wiring.doctor.hub_api import ANYWHERE, HubHealth, is_locked
from gpuherd.wiring.doctor.judging import judge_clock
from gpuherd.wiring.doctor.network import address_fact, connect, resolve
from gpuherd.wiring.doctor.starting import how_to_start
from gpuherd.wiring.doctor.steps import Journal, StepFailed
from gpuherd.wiring.installing.services import OWN_UNITS, PACKAGED_UNITS

__all__ = ["AgentExamination", "agent_state_dir"]


INSTALLED = Path("/var/lib/gpuherd-agent")
UNITS = tuple(Path(folder, "gpuherd-agent.service") for folder in (OWN_UNITS, *PACKAGED_UNITS))
"""Where the service of `gpuherd install` keeps it, which the configuration need not say."""


def agent_state_dir(settings: AgentSettings, given: Path | None) -> Path:
    """Find the agent's folder: as set, as given with --state-dir (the agent's or the hub's), or where it usually is."""
    if settings.state_dir is not None:
        return Path(settings.state_dir).expanduser()
    if given is not None:
        return given if is_there(given / "credential") else given / "agent"
    systemd = os.environ.get("STATE_DIRECTORY")
    if systemd:
        return Path(systemd.partition(":")[0])
    # To anyone but root it is a link to where they may not look; it stays when the service is taken away.
    is_service = os.path.lexists(INSTALLED) and any(unit.exists() for unit in UNITS)
    return INSTALLED if is_service else default_state_dir() / "agent"


def _is_installed(credential_file: Path) -> bool:
    return credential_file.parent == INSTALLED


def _how_to_enrol(credential_file: Path) -> str:
    if not _is_installed(credential_file):
        return HOW_TO_ENROL
    return (
        "create a join token on the hub with `gpuherd token create`, put it in a file on this node and "
        "run `gpuherd install agent --join-token-file FILE`"
    )


class AgentExamination:
    """Examines the agent of this machine."""

    def __init__(self, settings: AgentSettings, state_dir: Path, journal: Journal) -> None:
        self._settings = settings
        self._state_dir = state_dir
        self._journal = journal

    async def run(self) -> None:
        """Look at the agent, then go the way to its hub."""
        self._running()
        if self._settings.hub_url is not None:
            await self._hub(self._settings.hub_url)
        elif self._settings.listen is not None:
            await self._listening(self._settings.listen)

    def _running(self) -> None:
        held = is_locked(self._state_dir / "lock")
        if held:
            self._journal.ok("agent", f"runs with {self._state_dir}")
        elif held is None:
            self._journal.skipped("agent", f"{self._state_dir} cannot be read by this user")
        else:
            reason = f"no agent runs with the state folder {self._state_dir}"
            self._journal.failed(
                "agent", "not running", how_to_start("the agent", reason, "gpuherd-agent", "gpuherd agent")
            )

    # -- a hub that is dialled -------------------------------------------------------------------------------------

    async def _hub(self, url: str) -> None:
        journal, step = self._journal, "hub address"
        names = ("resolve", "connect", "hub there", "link", "credential", "clock")
        try:
            address = HubAddress.parse(url)
            step = "resolve"
            addresses = await resolve(address.host, "agent.hub_url")
            journal.ok(step, address_fact(address.host, addresses))
            step = "connect"
            taken = await connect(
                addresses,
                address.port,
                "start the hub, or correct agent.hub_url; a hub on 127.0.0.1 can be reached from other "
                "machines only through its proxy",
            )
            journal.ok(step, f"{taken} port {address.port} accepts connections")
            step = "hub there"
            health, asked_at = await self._health(address)
            secure = "TLS is valid; " if address.is_secure else ""
            journal.ok(step, f"{secure}gpuherd {clean(health.version, 40)} at {address.url}")
            step = "link"
            await self._link(address)
            journal.ok(step, "WebSockets reach the hub")
            step = "credential"
            await self._credential(address)
            judge_clock(journal, asked_at - health.time, "this machine", "the hub's")
        except StepFailed as failed:
            journal.failed(step, failed.fact, failed.remedy)
        except Misconfigured as error:
            journal.failed(step, "misconfigured", str(error))
        told = {found.name for found in journal.steps}
        journal.skip_all([name for name in names if name not in told])

    async def _health(self, address: HubAddress) -> tuple[HubHealth, float]:
        """Ask the hub for its health; gives it with our time halfway."""
        before = time.time()
        answer = await self._ask(address, "/api/v1/health")
        halfway = (before + time.time()) / 2
        nobody = StepFailed(
            f"no hub there (HTTP {answer.status})",
            f"agent.hub_url: there is no gpuherd hub at {address.url} (HTTP {answer.status}); check "
            + ("" if address.is_secure else "whether it is an https address, ")
            + "the address and its base path",
        )
        if answer.status == 421:
            raise StepFailed(
                "the name is not allowed",
                f"the hub does not accept the name {address.host}: add it to hub.allowed_hosts on the hub",
            )
        if answer.status != 200:
            raise nobody
        try:
            return msgspec.json.decode(answer.body, type=HubHealth), halfway
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise nobody from error

    async def _link(self, address: HubAddress) -> None:
        """See whether a WebSocket gets through, by asking for one without a credential, which the hub refuses."""
        key = base64.b64encode(os.urandom(16)).decode()
        headers = {
            "Connection": "Upgrade",
            "Upgrade": "websocket",
            "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": key,
            "Sec-WebSocket-Protocol": SUBPROTOCOL,
        }
        answer = await self._ask(address, "/api/v1/agent", headers=headers)
        code = hub_code(answer.body)
        if answer.status in (401, 403, 429) and code is not None:
            return
        raise StepFailed(
            f"no WebSocket (HTTP {answer.status})",
            str(refusal(HandshakeRefused(answer.status, code), address.url)),
        )

    async def _credential(self, address: HubAddress) -> None:
        """See whether the hub knows this node, by a report without content: a link would replace the agent's own."""
        file = self._credential_file()
        if file is None:
            self._journal.skipped("credential", "this user cannot read it")
            return
        check_shown_to(file, address)
        credential = read_secret(str(file), "credential")
        headers = {"Authorization": f"Bearer {credential}", "Content-Type": "application/json"}
        answer = await self._ask(address, "/api/v1/reports", method="POST", headers=headers, body=b"")
        if answer.status in (401, 403):
            # A service is enrolled anew by a new token; what runs by hand keeps to its credential.
            how = _how_to_enrol(file) if _is_installed(file) else f"delete {file}, then {_how_to_enrol(file)}"
            raise StepFailed(
                "not known to the hub",
                f"the hub does not know this node's credential (HTTP {answer.status}): {how}",
            )
        if answer.status != 400:
            raise StepFailed(
                f"HTTP {answer.status}",
                f"the hub responds with HTTP {answer.status} where it should accept reports; its log, or "
                "that of a proxy in front of it, says why",
            )
        self._journal.ok("credential", "known to the hub")

    def _credential_file(self) -> Path | None:
        """Find the credential; none if this user may not look for it. ``StepFailed`` if there is none."""
        named = self._settings.credential_file
        file = Path(named).expanduser() if named is not None else self._state_dir / "credential"
        if is_there(file):
            return file
        if may_be_looked_into(file.parent):
            raise StepFailed("none", f"this node is not enrolled ({file} is missing): {_how_to_enrol(file)}")
        return None

    async def _ask(
        self,
        address: HubAddress,
        path: str,
        *,
        method: str = "GET",
        headers: dict[str, str] | None = None,
        body: bytes | None = None,
    ) -> Answer:
        context = tls_context(self._settings.tls_ca_file) if address.is_secure else None
        place = HttpPlace(address.host, address.port, context)
        try:
            return await ask(place, f"{address.base_path}{path}", method=method, headers=headers, body=body)
        except ssl.SSLCertVerificationError as error:
            raise certificate_failure(error, address.host) from error
        except ssl.SSLError as error:
            raise StepFailed(
                "TLS fails",
                f"TLS with {address.authority} fails ({clean(str(error.reason or error), 80)}): if the hub serves no "
                "https, write http:// in agent.hub_url",
            ) from error
        except TimeoutError:
            raise StepFailed(
                "no answer",
                f"{address.url} accepts the connection but does not respond; the hub or a proxy hangs",
            ) from None
        except (OSError, http.client.HTTPException) as error:
            hint = "; does it expect https?" if not address.is_secure else ""
            raise StepFailed(
                "no HTTP",
                f"{address.url} does not speak HTTP ({clean(str(error) or type(error).__name__, 80)}){hint}",
            ) from error

    # -- a hub that dials ------------------------------------------------------------------------------------------

    async def _listening(self, listen: str) -> None:
        step = "secret"
        try:
            file = self._settings.listen_secret_file
            if file is None:
                self._journal.skipped(
                    step, "agent.listen_secret_file is not set; systemd may give it to the agent"
                )
            elif is_there(Path(file)) and not os.access(file, os.R_OK):
                self._journal.skipped(step, f"{file} cannot be read by this user")
            else:
                read_secret(file, "secret of this node")
                self._journal.ok(step, f"{file} can be read")
            step = "listening"
            address = ListenAddress.parse("agent.listen", listen, DEFAULT_PORT)
            host = ANYWHERE.get(address.host, address.host)
            await connect([host], address.port, "start the agent with `gpuherd agent --listen`")
            self._journal.ok(
                step, f"on {address}; `gpuherd doctor NAME` on the hub checks the whole connection"
            )
        except StepFailed as failed:
            self._journal.failed(step, failed.fact, failed.remedy)
        except Misconfigured as error:
            self._journal.failed(step, "misconfigured", str(error))
