"""The hub, asked whether it still knows this node."""

from __future__ import annotations

import asyncio
import http.client
from pathlib import Path

from gpuherd.agent.address import HubAddress
from gpuherd.agent.enrol import check_shown_to, read_secret
from gpuherd.agent.refusals import hub_code
from gpuherd.agent.settings import AgentSettings
from gpuherd.agent.tls import tls_context
from gpuherd.wiring.doctor.asking import HttpPlace, ask

__all__ = ["is_refused"]

UNKNOWN_CREDENTIAL = "unauthorized"


def is_refused(settings: AgentSettings, credential_file: Path) -> bool:
    """Tell whether the hub itself says that it does not know the credential; not if a proxy says so, or nobody.

    Asked with a report without content, which changes nothing; ``Misconfigured`` if another hub gave the credential.
    """
    if settings.hub_url is None:
        return False
    address = HubAddress.parse(settings.hub_url)
    check_shown_to(credential_file, address)
    place = HttpPlace(
        address.host, address.port, tls_context(settings.tls_ca_file) if address.is_secure else None
    )
    headers = {
        "Authorization": f"Bearer {read_secret(str(credential_file), 'credential')}",
        "Content-Type": "application/json",
    }
    path = f"{address.base_path}/api/v1/reports"
    try:
        answer = asyncio.run(ask(place, path, method="POST", headers=headers, body=b""))
    except (OSError, http.client.HTTPException):
        return False
    return answer.status == 401 and hub_code(answer.body) == UNKNOWN_CREDENTIAL
