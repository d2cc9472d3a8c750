"""Where the hub connects to for a listed node: the address of the list, or what the SSH configuration makes of it."""

from __future__ import annotations

import os
from pathlib import Path

from msgspec import Struct

from gpuherd.model.targets import Target
from gpuherd.model.text import clean
from gpuherd.sources.settings import ReachSettings, SshSettings
from gpuherd.sources.ssh.login import Login, LoginBook
from gpuherd.sources.ssh.places import Progress
from gpuherd.wiring.doctor.steps import StepFailed
from gpuherd.wiring.doctor.threads import in_thread

__all__ = ["Route", "find_route"]

READ_SECONDS = 10.0
LISTENERS = {
    "ssh": "is sshd running there, and is the port right?",
    "pull": "start `gpuherd agent --listen` there, or correct the port",
    "node_info": "start node_info.py there, or correct the port",
    "xmlrpc": "start the RPC server there, or correct the port",
    "http_files": "start the web server that serves the files of gpu-run.sh there, or correct the port",
}


class Route(Struct, frozen=True, kw_only=True):
    """The machine that is dialled first."""

    host: str
    port: int
    remedy: str
    """What to do when nothing listens there."""
    note: str = ""
    """What is to be said of the way there, such as a jump host."""
    is_by_command: bool = False
    """A ProxyCommand makes the connection: there is nothing to resolve and to connect to."""
    login: Login | None = None
    """How to log in, for SSH."""


async def find_route(target: Target, reach: ReachSettings, accepted_keys_file: Path) -> Route:
    """Find out where to connect to; ``ContactFailed`` or ``StepFailed`` if the SSH configuration cannot be used.

    The paths of ``reach`` must be full ones.
    """
    way = str(reach.__struct_config__.tag)
    if not isinstance(reach, SshSettings):
        return Route(host=target.address, port=target.port or reach.port, remedy=LISTENERS[way])
    book = LoginBook(reach, accepted_keys_file=accepted_keys_file, environment=os.environ)
    try:
        login = await in_thread(lambda: book.login(target, Progress(clean(target.name))), READ_SECONDS)
    except TimeoutError:
        raise StepFailed(
            "files cannot be read",
            f"{target.name}: the SSH configuration or a key cannot be read within {READ_SECONDS:g} s; is "
            "their file system available?",
        ) from None
    first = login.hops[0] if login.hops else login
    note = ""
    if login.hops:
        note = f"jump host {first.where}"
    elif login.alias not in (login.host, target.name):
        note = f"{login.alias} in the SSH configuration"
    elif login.alias != login.host:
        note = "from the SSH configuration"
    return Route(
        host=first.host,
        port=first.port,
        remedy=LISTENERS[way],
        note=note,
        is_by_command=first.is_by_command,
        login=login,
    )
