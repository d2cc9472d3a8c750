"""The hub, asked whether it still knows this node."""

from __future__ import annotations

import asyncio
import http.client
from pathlib import Path

from gpuherd.agent.address import HubAddress
from gpuherd.agent.enrol import read_secret
from gpuherd.agent.refusals import hub_code
from gpuherd.agent.settings import AgentSettings
from gpuherd.agent.tls import tls_context
from gpuherd.wiring.doctor.asking import HttpPlace, ask

__all__ = ["is_refused"]


def is_refused(settings: AgentSettings, credential_file: Path) -> bool:
    """Tell whether the hub itself says that it does not know the credential; not if a proxy says so, or nobody.

    Asked with a report without content, which changes nothing. The caller has seen that it is the hub which gave it.
    """
    if settings.hub_url is None:
        return False
    address = HubAddress.parse(settings.hub_url)
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
    return answer.status in (401, 403) and hub_code(answer.body) is not None
