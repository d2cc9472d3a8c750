"""Where the hub is: one URL, checked once, and the addresses made from it."""

from __future__ import annotations

import ipaddress
from urllib.parse import quote, urlsplit

from msgspec import Struct

from gpuherd.model.errors import Misconfigured

__all__ = ["HubAddress"]


class HubAddress(Struct, frozen=True, kw_only=True):
    """A hub's address, taken apart."""

    is_secure: bool
    host: str
    port: int
    base_path: str

    @classmethod
    def parse(cls, url: str) -> HubAddress:
        """Check a hub URL; ``Misconfigured`` says what is wrong with it (never showing a password in it)."""
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as error:
            raise Misconfigured(f"agent.hub_url: {error}; write it like https://gpus.example.org") from error
        if parts.username is not None or parts.password is not None:
            raise Misconfigured(
                "agent.hub_url: must not contain a user name or password; a node uses the credential it "
                "got when it enrolled"
            )
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise Misconfigured(
                f"agent.hub_url: {url!r} is not an http or https address; write it like https://gpus.example.org"
            )
        if parts.query or parts.fragment:
            raise Misconfigured(f"agent.hub_url: {url!r} must end before any ? or #")
        is_secure = parts.scheme == "https"
        return cls(
            is_secure=is_secure,
            host=parts.hostname,
            port=port or (443 if is_secure else 80),
            base_path=parts.path.rstrip("/"),
        )

    @property
    def authority(self) -> str:
        """Host and port as they stand in a URL."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def url(self) -> str:
        """The hub's URL, for people."""
        return f"{'https' if self.is_secure else 'http'}://{self.authority}{self.base_path}"

    @property
    def agent_url(self) -> str:
        """Where an agent opens its WebSocket."""
        path = quote(f"{self.base_path}/api/v1/agent", safe="/%:@!$&'()*+,;=~-._")
        return f"{'wss' if self.is_secure else 'ws'}://{self.authority}{path}"

    @property
    def enroll_path(self) -> str:
        """Where a join token is exchanged for a credential."""
        return f"{self.base_path}/api/v1/enroll"

    @property
    def is_exposed(self) -> bool:
        """Whether the credential would cross a network unencrypted."""
        if self.is_secure or self.host == "localhost":
            return False
        try:
            return not ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return True
