"""The hub's side of one login: which host key it believes, which keys it shows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import asyncssh

from gpuherd.model.text import clean
from gpuherd.sources.following import ContactFailed
from gpuherd.sources.ssh.known_hosts import OfferedKey, entry_name
from gpuherd.sources.ssh.login import Login
from gpuherd.sources.ssh.places import Progress

__all__ = ["LoginClient", "offered_key"]

MAX_AGENT_KEYS = 32
NAMED_KEYS = 3


def offered_key(login: Login, key: asyncssh.SSHKey) -> OfferedKey:
    """Write a server's key down under the name by which it is looked up."""
    line = b" ".join(key.export_public_key("openssh").split()[:2]).decode("ascii")
    return OfferedKey(
        host=login.host_key_name, port=login.port, key=line, fingerprint=str(key.get_fingerprint())
    )


class LoginClient(asyncssh.SSHClient):
    """Answers asyncssh's questions during one login."""

    def __init__(self, login: Login, progress: Progress, *, is_accepting_new: bool) -> None:
        self._login = login
        self._progress = progress
        self._is_accepting_new = is_accepting_new
        self._is_asked = self._is_agent_asked = False
        self._waiting: list[tuple[str, Any]] = []
        self._agent: asyncssh.SSHAgentClient | None = None
        self._connection: asyncssh.SSHClientConnection | None = None
        self.offered: asyncssh.SSHKey | None = None
        """A key that no file vouches for."""
        self.tried: list[str] = []
        """Names of the keys that were shown to the server."""
        self.notes: list[str] = []
        """Why a key could not be shown."""

    def connection_made(self, conn: asyncssh.SSHClientConnection) -> None:
        """Keep the connection, which knows how far it has come."""
        self._connection = conn

    @property
    def has_greeted(self) -> bool:
        """Whether the server has said that it speaks SSH."""
        return self._connection is not None and bool(self._connection.get_extra_info("server_version"))

    def validate_host_public_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:
        """Decide about a key that is not among the known ones."""
        self.offered = key
        return self._is_accepting_new and not self._login.known.own

    @property
    def new_key(self) -> OfferedKey | None:
        """The key that was believed because it is the first one; to be remembered."""
        if self.offered is None or not self._is_accepting_new or self._login.known.own:
            return None
        return offered_key(self._login, self.offered)

    async def public_key_auth_requested(self) -> Any:
        """Show the next key, or none: those of files first, then the agent's."""
        self._progress.phase = "logging in"
        if not self._is_asked:
            self._is_asked = True
            self._waiting = list(self._file_keys())
        if not self._waiting and not self._is_agent_asked:
            self._is_agent_asked = True
            self._waiting = await self._agent_keys()
        if not self._waiting:
            return None
        name, key = self._waiting.pop(0)
        self.tried.append(name)
        return [key]

    def _file_keys(self) -> Iterator[tuple[str, Any]]:
        for identity in self._login.identities:
            if identity.key is None:
                self.notes.append(f"{identity.file} {identity.trouble}")
            elif identity.certificate is None:
                yield str(identity.file), identity.key
            else:
                yield str(identity.file), (identity.key, identity.certificate)

    async def _agent_keys(self) -> list[tuple[str, Any]]:
        login = self._login
        if not login.agent_path:
            return []
        try:
            self._agent = await asyncssh.connect_agent(login.agent_path)
            keys = list(await self._agent.get_keys())
        except (OSError, ValueError, asyncssh.Error) as error:
            self.notes.append(f"the SSH agent at {login.agent_path} does not respond ({error})")
            return []
        wanted = {blob for identity in login.identities for blob in identity.public_blobs}
        at_hand = {identity.key.public_data for identity in login.identities if identity.key is not None}
        return [
            (f"the agent's {clean(key.get_comment() or 'key without a comment', 64)}", key)
            for key in keys[:MAX_AGENT_KEYS]
            if key.public_data not in at_hand and (key.public_data in wanted or not login.is_only_these)
        ]

    def close(self) -> None:
        """Let go of the agent; the login is over."""
        if self._agent is not None:
            self._agent.close()
            self._agent = None

    def host_key_failure(self, reason: str) -> ContactFailed:
        """Explain why the server's key was refused."""
        login, progress = self._login, self._progress
        name = entry_name(login.host_key_name, login.port)
        if self.offered is None:
            code = "host_key_revoked" if "revoked" in reason else "host_key_unknown"
            return progress.failure(
                code, f"the host key of {name} was rejected: {clean(reason, 200)}", needs_person=True
            )
        offered = offered_key(login, self.offered)
        if login.known.own:
            known = ", ".join(sorted({str(key.get_fingerprint()) for key in login.known.own})[:NAMED_KEYS])
            return progress.failure(
                "host_key_changed",
                f"the host key of {name} has CHANGED from {known} to {offered.fingerprint}. Either the "
                "machine was reinstalled or someone is intercepting the connection; the hub sends nothing "
                f"to it. If the new key is right: `gpuherd hub accept-key --replace {login.name}`",
                needs_person=True,
            )
        return progress.failure(
            "host_key_unknown",
            f"the host key of {name} is unknown; it offers {offered.fingerprint} "
            f"({offered.key.split()[0]}). Compare it on the machine (ssh-keygen -lf), then: `gpuherd hub "
            f"accept-key {login.name}`",
            needs_person=True,
        )

    def login_failure(self, reason: str = "") -> ContactFailed:
        """Explain why the server did not let us in."""
        login = self._login
        parts = [f"login as {login.where} was rejected"]
        if reason:
            parts.append(f"the server says: {clean(reason, 120)}")
        if self.tried:
            more = f" and {len(self.tried) - NAMED_KEYS} more" if len(self.tried) > NAMED_KEYS else ""
            parts.append(f"keys offered: {', '.join(self.tried[:NAMED_KEYS])}{more}")
        elif not self._is_asked:
            parts.append("the server does not accept keys, only other kinds of login")
        else:
            parts.append("there was no key to offer")
        parts += self.notes[:NAMED_KEYS]
        if "oo many" in reason:
            remedy = "set key_files for the node, or IdentitiesOnly in the SSH configuration"
        elif not self._is_asked:
            remedy = "allow PubkeyAuthentication in its sshd_config"
        elif self.tried:
            remedy = (
                f"put one of the public keys into ~{login.user}/.ssh/authorized_keys there; the account must exist, "
                "be unlocked and have a login shell that exists"
            )
        else:
            remedy = "set reach.key_files, or load a key into the hub's SSH agent"
        return self._progress.failure("login_refused", f"{'; '.join(parts)}; {remedy}", needs_person=True)
