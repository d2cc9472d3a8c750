"""How to log in at a machine: what the list says, then gpuherd.toml, then the SSH configuration, then the defaults."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import asyncssh
from msgspec import Struct

from gpuherd.model.targets import Target
from gpuherd.model.text import clean
from gpuherd.sources.settings import SshSettings
from gpuherd.sources.ssh.key_files import Identity, KeyFiles
from gpuherd.sources.ssh.known_hosts import KnownHosts, KnownKeys
from gpuherd.sources.ssh.places import Progress

__all__ = ["Login", "LoginBook"]

DEFAULT_PORT = 22
MAX_HOPS = 8
SYSTEM_CONFIG = Path("/etc/ssh/ssh_config")
SYSTEM_KNOWN_HOSTS = ("/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2")
USER_KNOWN_HOSTS = ("~/.ssh/known_hosts", "~/.ssh/known_hosts2")
DEFAULT_KEY_FILES = ("~/.ssh/id_ed25519", "~/.ssh/id_ecdsa", "~/.ssh/id_rsa")

_HOST = re.compile(r"[A-Za-z0-9_\[:][A-Za-z0-9_.:%\-\[\]]{0,254}")
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@\\+$\-]{0,127}")


class Login(Struct, frozen=True, kw_only=True):
    """Everything needed to log in at one machine."""

    alias: str
    """As it was asked for, before the SSH configuration's HostName."""
    name: str
    """By which a person names it to `gpuherd hub accept-key`."""
    host: str
    port: int
    user: str
    host_key_name: str
    """Under which name its key is known: HostKeyAlias or the host."""
    identities: tuple[Identity, ...]
    is_only_these: bool
    """Keys of the agent that are not among the identities are not tried."""
    agent_path: str
    """Socket of the SSH agent, empty for none."""
    known: KnownKeys
    config_files: tuple[Path, ...]
    config: Any
    """asyncssh's reading of the configuration for this machine."""
    is_by_command: bool
    """A ProxyCommand makes the connection."""
    hops: tuple[Login, ...] = ()
    """Jump hosts, the one nearest to the hub first."""

    @property
    def where(self) -> str:
        """Name it for people."""
        port = "" if self.port == DEFAULT_PORT else f":{self.port}"
        return f"{self.user}@{self.host}{port}"

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens."""
        return self.host, self.port


class LoginBook:
    """Works logins out; reads files, so call it from a thread. May be used from several at once."""

    def __init__(
        self, settings: SshSettings, *, accepted_keys_file: Path, environment: Mapping[str, str]
    ) -> None:
        self._settings = settings
        self._accepted_keys_file = accepted_keys_file
        self._environment = environment
        self._key_files = KeyFiles()
        self._known_hosts = KnownHosts()

    def login(self, target: Target, progress: Progress) -> Login:
        """Find out how to log in at a node and at the jump hosts before it.

        ``ContactFailed`` with ``ssh_config`` if the configuration cannot be understood.
        """
        settings = self._settings
        # Lists come from anywhere; with ProxyCommand such words end up among a program's arguments.
        if not _HOST.fullmatch(target.address) or not _USER.fullmatch(target.user or "nobody"):
            raise progress.failure(
                "ssh_config",
                f"{clean(repr(target.address), 80)} is not a host name, or {clean(repr(target.user), 80)} "
                f"not a user name; correct {clean(target.place) or 'the list'}",
                needs_person=True,
            )
        listed = [Path(target.key_file)] if target.key_file is not None else list(settings.key_files)
        return self._login(
            target.address,
            progress,
            name=target.name,
            user=target.user or settings.user,
            port=target.port or settings.port,
            key_files=[file.expanduser() for file in listed],
            jump=target.proxy_jump,
            behind=(),
        )

    def _login(
        self,
        alias: str,
        progress: Progress,
        *,
        name: str,
        user: str | None,
        port: int | None,
        key_files: list[Path],
        jump: str | None,
        behind: tuple[str, ...],
    ) -> Login:
        files = self._config_files(progress)
        options = self._options(alias, user, port, files, progress)
        config: Any = options.config
        if config.has_match_final():
            options = self._options(alias, user, port, files, progress, is_final=True)
            config = options.config
        is_only_these = bool(config.get("IdentitiesOnly")) or bool(key_files)
        named = config.get("IdentityFile")
        if behind and named:
            # gpuherd.toml's keys are for the nodes; a jump host that has its own in the SSH configuration uses those.
            is_only_these, key_files = bool(config.get("IdentitiesOnly")), []
        wanted = key_files or [Path(name).expanduser() for name in named or DEFAULT_KEY_FILES]
        if named == []:  # IdentityFile none
            wanted = key_files
        host_key_name = options.host_key_alias or options.host
        try:
            known = self._known_hosts.find(self._known_hosts_files(config), host_key_name, options.port)
        except OSError as error:
            raise progress.failure(
                "ssh_config",
                f"{error.filename} with the known host keys cannot be read: {error.strerror}",
                needs_person=True,
            ) from error
        identities = self._key_files.read(wanted)
        is_by_command = jump is None and config.get("ProxyJump") is None and bool(options.proxy_command)
        return Login(
            alias=alias,
            name=name,
            host=options.host,
            port=options.port,
            user=options.username,
            host_key_name=host_key_name,
            # A file that is missing is worth a word only if gpuherd.toml or the list names it.
            identities=tuple(i for i in identities if key_files or not i.is_missing),
            is_only_these=is_only_these,
            agent_path=self._agent_path(config),
            known=known,
            config_files=files,
            config=config,
            is_by_command=is_by_command,
            hops=self._hops(config.get("ProxyJump") if jump is None else jump, progress, behind),
        )

    def _hops(self, jump: str | None, progress: Progress, behind: tuple[str, ...]) -> tuple[Login, ...]:
        """Work the chain of jump hosts out; the first of them may itself be behind others."""
        if not jump or jump.lower() == "none":
            return ()
        chain: list[Login] = []
        for position, hop in enumerate(part.strip() for part in jump.split(",")):
            user, host, port = _split_hop(hop, progress)
            if hop in behind or len(behind) + position >= MAX_HOPS:
                raise progress.failure(
                    "ssh_config",
                    f"the route to it jumps through {host} in a loop; set 'ProxyJump none' for {host} in "
                    "the SSH configuration",
                    needs_person=True,
                )
            login = self._login(
                host,
                progress,
                name=hop.rpartition("@")[2],
                user=user,
                port=port,
                key_files=[file.expanduser() for file in self._settings.key_files],
                jump=None if position == 0 else "none",
                behind=(*behind, hop),
            )
            chain += [*login.hops, login]
        return tuple(chain)

    def _options(
        self,
        alias: str,
        user: str | None,
        port: int | None,
        files: tuple[Path, ...],
        progress: Progress,
        *,
        is_final: bool = False,
    ) -> asyncssh.SSHClientConnectionOptions:
        asked: dict[str, Any] = {} if user is None else {"username": user}
        if port is not None:
            asked["port"] = port
        try:
            return asyncssh.SSHClientConnectionOptions(
                host=alias,
                config=[str(file) for file in files],
                final=is_final,
                client_keys=None,
                known_hosts=None,
                x509_trusted_certs=None,
                **asked,
            )
        except (asyncssh.Error, OSError, ValueError) as error:
            raise progress.failure(
                "ssh_config",
                f"the SSH configuration cannot be used: {error}; see `ssh -G {alias}`",
                needs_person=True,
            ) from error

    def _config_files(self, progress: Progress) -> tuple[Path, ...]:
        """The configuration that gpuherd.toml names and no other, else what ssh itself would read."""
        named = self._settings.config_file
        if named is not None:
            file = named.expanduser()
            if not os.access(file, os.R_OK):
                raise progress.failure(
                    "ssh_config", f"config_file {file} does not exist or cannot be read", needs_person=True
                )
            return (file,)
        usual = (Path("~/.ssh/config").expanduser(), SYSTEM_CONFIG)
        return tuple(file for file in usual if os.access(file, os.R_OK))

    def _known_hosts_files(self, config: Any) -> tuple[Path, ...]:
        if self._settings.known_hosts_file is not None:
            named = [str(self._settings.known_hosts_file)]
        else:
            named = [
                *config.get("UserKnownHostsFile", USER_KNOWN_HOSTS),
                *config.get("GlobalKnownHostsFile", SYSTEM_KNOWN_HOSTS),
            ]
        files = [Path(name.replace("%d", "~")).expanduser() for name in named]
        return (*files, self._accepted_keys_file)

    def _agent_path(self, config: Any) -> str:
        named = config.get("IdentityAgent", "SSH_AUTH_SOCK")
        if named is None:  # IdentityAgent none
            return ""
        if named == "SSH_AUTH_SOCK":
            return self._environment.get("SSH_AUTH_SOCK", "")
        if named.startswith("$"):
            return self._environment.get(named[1:].strip("{}"), "")
        return str(Path(named).expanduser())


def _split_hop(hop: str, progress: Progress) -> tuple[str | None, str, int | None]:
    """Take ``[user@]host[:port]`` or the same as an ssh:// address apart."""
    rest = hop.removeprefix("ssh://").rstrip("/")
    user, _, rest = rest.rpartition("@")
    host, colon, port = rest.rpartition(":")
    if not colon or (":" in host and not host.endswith("]")) or rest.endswith("]"):
        host, port = rest, ""
    host = host.strip("[]")
    if not host or (port and not (port.isascii() and port.isdigit() and 0 < int(port) < 65_536)):
        raise progress.failure(
            "ssh_config", f"jump host {hop!r} is not of the form user@host:port", needs_person=True
        )
    return user or None, host, int(port) if port else None
