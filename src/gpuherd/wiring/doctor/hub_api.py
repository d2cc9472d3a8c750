"""What the hub on this machine says, asked over its own API at its loopback address."""

from __future__ import annotations

import fcntl
import http.client
import os
import ssl
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec
from msgspec import Struct

from gpuherd.api.settings import HubSettings
from gpuherd.auth.local_key import read_local_key
from gpuherd.auth.node_ids import node_id_for
from gpuherd.model.errors import Failed, Refused
from gpuherd.model.reports import Problem
from gpuherd.wiring.doctor.asking import Answer, HttpPlace, ask

__all__ = ["ANYWHERE", "HubApi", "HubHealth", "HubNode", "NoHub", "is_locked", "names_of"]

T = TypeVar("T")
ANYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - compared, not bound
"""Where to ask for what listens on every address."""


class NoHub(Failed):
    """There is no hub to ask; the text says why."""


class _Loop(Struct, frozen=True):
    name: str
    state: str = "ok"
    last_error: str | None = None


class _Store(Struct, frozen=True):
    state: str = "ok"
    last_error: str | None = None


class _Links(Struct, frozen=True):
    open: int = 0
    refused_credentials: int = 0
    flapping: tuple[str, ...] = ()


class _List(Struct, frozen=True):
    name: str
    nodes: int = 0
    failing: int = 0
    refused: dict[str, str] = {}
    trouble: str | None = None


class NodeFrames(Struct, frozen=True):
    """How the frames of a node fare."""

    node_id: str
    accepted: int = 0
    refused: dict[str, int] = {}
    last_error: str | None = None
    last_error_at: float | None = None


class HubHealth(Struct, frozen=True):
    """The part of GET /api/v1/health that is looked at; a newer or older hub may say more or less."""

    status: str
    version: str
    time: float
    uptime_seconds: float
    reasons: tuple[str, ...] = ()
    loops: tuple[_Loop, ...] = ()
    store: _Store = _Store()
    links: _Links = _Links()
    lists: tuple[_List, ...] = ()
    nodes: tuple[NodeFrames, ...] = ()


class HubNode(Struct, frozen=True):
    """The part of GET /api/v1/nodes/{id} that is looked at."""

    id: str
    name: str
    way: str = "push"
    state: str = "never"
    reason: str = ""
    received_at: float | None = None
    age_seconds: float | None = None
    interval_seconds: float | None = None
    clock_skew_seconds: float | None = None
    devices: tuple[dict[str, Any], ...] = ()
    problems: tuple[Problem, ...] = ()
    notes: tuple[Problem, ...] = ()


class HubApi:
    """Asks the hub that the configuration describes."""

    def __init__(self, settings: HubSettings) -> None:
        self._settings = settings
        self.address = settings.address
        self._host = ANYWHERE.get(self.address.host, self.address.host)

    @property
    def url(self) -> str:
        """Where it should be, for people."""
        scheme = "http" if self._settings.tls_certificate is None else "https"
        return f"{scheme}://{self.address}{self._settings.mount}/"

    async def health(self) -> HubHealth:
        """How it is doing; ``NoHub`` if nobody answers."""
        return _decoded(await self._get("/api/v1/health"), HubHealth)

    async def node(self, node_id: str) -> HubNode | None:
        """What it knows of a node, none if it does not know it."""
        answer = await self._get(f"/api/v1/nodes/{quote(node_id, safe='')}")
        return None if answer.status == 404 else _decoded(answer, HubNode)

    async def nodes(self) -> tuple[HubNode, ...]:
        """What it knows of every node."""
        return tuple(_decoded(await self._get("/api/v1/nodes"), list[HubNode]))

    async def _get(self, path: str) -> Answer:
        place = HttpPlace(self._host, self.address.port, self._tls())
        key = read_local_key(self._settings.state_dir)
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        try:
            return await ask(place, f"{self._settings.mount}{path}", headers=headers)
        except ConnectionRefusedError:
            raise NoHub("nothing listens there") from None
        except TimeoutError:
            raise NoHub("it does not respond in time") from None
        except (OSError, http.client.HTTPException) as error:
            raise NoHub(f"the server there does not respond like a hub ({error})") from error

    def _tls(self) -> ssl.SSLContext | None:
        """Believe nobody but who has the certificate that this hub was given; its name is not the loopback's."""
        certificate = self._settings.tls_certificate
        if certificate is None:
            return None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        try:
            context.load_verify_locations(certificate)
        except OSError as error:
            raise NoHub(f"hub.tls_certificate cannot be read: {error.strerror or error}") from error
        return context


def _decoded(answer: Answer, kind: type[T]) -> T:
    if answer.status == 401:
        raise NoHub("it does not give this user any information; run this with sudo, or as the hub's user")
    if answer.status != 200:
        raise NoHub(f"the server there is not a gpuherd hub (HTTP {answer.status})")
    try:
        return msgspec.json.decode(answer.body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise NoHub("the server there is not a gpuherd hub") from error


def is_locked(file: Path) -> bool | None:
    """Tell whether a process holds a lock file; none if this user may not look at it.

    For a moment the lock is shared, if it is free.
    """
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def names_of(host: str) -> set[str]:
    """Give the names by which the hub may know a host: its own, and the id made of it."""
    try:
        return {host, node_id_for(host)}
    except Refused:
        return {host}
