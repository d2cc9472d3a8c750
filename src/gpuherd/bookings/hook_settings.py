"""The [[bookings.hooks]] tables of gpuherd.toml: what is told of bookings, and to whom."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from msgspec import Meta, Struct

from gpuherd.model.errors import Misconfigured

__all__ = ["HookEvent", "HookSettings"]

HookEvent = Literal["start", "end", "violation"]


class HookSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A ``[[bookings.hooks]]`` table: what the hub calls when bookings start, end or are violated."""

    on: Annotated[
        tuple[HookEvent, ...],
        Meta(
            min_length=1,
            max_length=3,
            description='Events: "start", "end", "violation" (someone else uses a booked device).',
        ),
    ]
    url: Annotated[
        Annotated[str, Meta(max_length=2000)] | None,
        Meta(description="Address to POST the event to as JSON; http or https. Redirects are not followed."),
    ] = None
    command: Annotated[
        Annotated[tuple[Annotated[str, Meta(min_length=1, max_length=4096)], ...], Meta(max_length=100)],
        Meta(
            description="Command to run instead: a program with its full path, and its arguments. It gets the "
            "event as JSON on its standard input; no shell is used."
        ),
    ] = ()
    secret_file: Annotated[
        Path | None,
        Meta(description="File with a secret that signs the request, so that the receiver can verify it."),
    ] = None
    networks: Annotated[
        Annotated[tuple[str, ...], Meta(max_length=100)],
        Meta(
            description="Private networks that the hub may post to, such as 10.1.0.0/16 or 127.0.0.1/32. A URL "
            "that leads to any other private address is rejected."
        ),
    ] = ()
    ca_file: Annotated[
        Path | None, Meta(description="PEM file with the certificates to trust instead of the system's.")
    ] = None
    deadline_seconds: Annotated[
        float, Meta(ge=0.1, le=300, description="Longest attempt, in seconds; a command is then killed.")
    ] = 10.0
    attempts: Annotated[
        int, Meta(ge=1, le=10, description="How many times to try an event, with growing pauses.")
    ] = 5
    violation_after_seconds: Annotated[
        float,
        Meta(
            ge=0,
            le=86_400,
            description="How long a booking must have been violated before the event, in seconds.",
        ),
    ] = 60.0

    def check(self) -> None:
        """Raise ``Misconfigured`` for what cannot be meant; files are looked at when the hub starts."""
        if (self.url is None) == (not self.command):
            raise Misconfigured("give either url or command")
        if self.url is None:
            for key in ("secret_file", "ca_file", "networks"):
                if getattr(self, key):
                    raise Misconfigured(f"{key}: only works with url, not with command; remove it")
            if not self.command[0].startswith("/"):
                raise Misconfigured(
                    f'command: "{self.command[0]}" is not a full path; write for example "/usr/bin/logger"'
                )
            if any("\0" in part for part in self.command):
                raise Misconfigured("command: an argument contains a NUL character; remove it")
            return
        self._check_url(self.url)
        for network in self.networks:
            try:
                ipaddress.ip_network(network)
            except ValueError as error:
                raise Misconfigured(f'networks: {error}; write for example "10.1.0.0/16"') from error

    def _check_url(self, url: str) -> None:
        # The address itself may be the secret, as with chat services: it is never part of a message.
        try:
            parts = urlsplit(url)
            is_good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            is_good = False
        if not is_good or not url.isprintable() or " " in url:
            raise Misconfigured(
                "url: is not an http or https address; write it like https://chat.example.org/hooks/gpus"
            )
        if "@" in parts.netloc:
            raise Misconfigured(
                "url: must not contain a user name or password; sign the requests with secret_file"
            )
