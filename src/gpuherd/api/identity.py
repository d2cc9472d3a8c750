"""Who makes a request: by the browser's cookie, an API token, a proxy's word, or nobody."""

from __future__ import annotations

import asyncio
import hmac
from ipaddress import ip_address
from typing import Protocol

from msgspec import structs

from gpuherd.api.asgi import Scope, header
from gpuherd.api.cookies import session_secret
from gpuherd.api.errors import unavailable
from gpuherd.api.networks import parse_networks
from gpuherd.api.record_calls import RecordCalls
from gpuherd.api.sender import SENDER_KEY, Sender, Senders
from gpuherd.api.settings import HubSettings
from gpuherd.auth.authority import ALL_SCOPES, Authority, find_key, load_known, shown_to
from gpuherd.auth.secrets import API_TOKEN_PREFIX, SESSION_PREFIX, digest, is_secret
from gpuherd.fleet.clock import Clock
from gpuherd.model.errors import Failed, Refused
from gpuherd.model.people import Account, PrivacyClass, Viewer
from gpuherd.records.people import PeopleRecords

__all__ = ["Identity", "ProxyWord"]

PROXY_WORD_SECONDS = 900.0
"""How long a proxy's word holds for a stream that it let through."""

_SHOWN_TO_ALL: dict[str | None, PrivacyClass | None] = {
    "off": None,
    "counts": "counts",
    "read": "public",
    "names": None,
    None: None,
}


class ProxyWord(Protocol):
    """Finds the account of whom a proxy names."""

    async def account(self, scope: Scope, sender: Sender) -> Account | None:
        """Give the account; none if no proxy names anyone. ``Refused`` for someone who may not enter."""


class Identity:
    """Tells who makes a request, and whether someone who was let in still may."""

    def __init__(
        self,
        settings: HubSettings,
        *,
        authority: Authority,
        records: PeopleRecords,
        calls: RecordCalls,
        clock: Clock,
    ) -> None:
        self._senders = Senders(settings.trusted_proxies)
        self._mount = settings.mount
        self._shown_to_all = _SHOWN_TO_ALL[settings.public]
        self._named_networks = parse_networks(settings.public_networks, "hub.public_networks")
        self._own_address = str(ip_address(settings.address.host))
        self.is_open_at_first = settings.public is None and settings.address.is_loopback
        """Whether programs on this machine see everything as long as there is no account."""
        self._authority = authority
        self._records = records
        self._calls = calls
        self._clock = clock
        self._refreshing = asyncio.Lock()
        self._wanted = self._done = 0
        self._trouble: Failed | None = None
        self.proxy_word: ProxyWord | None = None
        self.local_key_digest: str | None = None
        """Of the key with which programs on this machine, and no others, look at everything."""

    async def viewer(self, scope: Scope) -> Viewer:
        """Find out; a bad or expired credential is nobody. ``HttpError`` 503 if the records do not answer."""
        sender = self._senders.of(scope)
        scope[SENDER_KEY] = sender
        try:
            viewer = await self._someone(scope, sender)
        except Failed as error:
            raise unavailable(error) from error
        if viewer is None:
            return Viewer(privacy=self._shown_to(sender), peer=sender.address)
        if viewer.privacy is None:  # a token that may not read sees at least what everyone sees
            return structs.replace(viewer, privacy=self._shown_to(sender))
        return viewer

    async def _someone(self, scope: Scope, sender: Sender) -> Viewer | None:
        scheme, _, credential = (header(scope, b"authorization") or "").partition(" ")
        if scheme.lower() == "bearer" and credential.startswith(API_TOKEN_PREFIX):
            # Whoever shows a token means it: a bad one is not made good by a cookie.
            return await self._by_key(credential.strip(), API_TOKEN_PREFIX, sender)
        if (
            scheme.lower() == "bearer"
            and self._is_local_key(credential.strip())
            and self._is_this_machine(sender)
        ):
            return Viewer(privacy="admin", peer=sender.address)
        secret = session_secret(scope, sender, self._mount)
        viewer = None if secret is None else await self._by_key(secret, SESSION_PREFIX, sender)
        if viewer is None and self.proxy_word is not None:
            return await self._by_proxy(self.proxy_word, scope, sender)
        return viewer

    def _is_local_key(self, credential: str) -> bool:
        return self.local_key_digest is not None and hmac.compare_digest(
            digest(credential), self.local_key_digest
        )

    def _is_this_machine(self, sender: Sender) -> bool:
        """Tell whether a program on the hub's machine asks: by loopback, or by the address on which the hub listens."""
        is_told_by_stranger = not (sender.is_certain or sender.is_proxy)
        return sender.is_local or (sender.address == self._own_address and not is_told_by_stranger)

    async def _by_key(self, secret: str, prefix: str, sender: Sender) -> Viewer | None:
        if not is_secret(secret, prefix):
            return None
        wanted, now = digest(secret), self._clock.wall()
        key = self._authority.key(wanted)
        if key is None:
            generation = self._authority.generation
            key = await self._calls.run(
                find_key, self._records, wanted, now, is_token=prefix == API_TOKEN_PREFIX
            )
            if key is None:
                return None
            self._authority.keep(wanted, key, generation=generation)
        return self._authority.viewer(key, now=now, peer=sender.address)

    async def _by_proxy(self, proxy_word: ProxyWord, scope: Scope, sender: Sender) -> Viewer | None:
        try:
            account = await proxy_word.account(scope, sender)
        except Refused:
            return None
        if account is None or account.is_disabled:
            return None
        return Viewer(
            account=account,
            privacy=shown_to(account, ALL_SCOPES),
            scopes=ALL_SCOPES,
            via="proxy",
            # Only with a request does the proxy say who it is, so whoever keeps a stream open has to ask again.
            expires_at=self._clock.wall() + PROXY_WORD_SECONDS,
            peer=sender.address,
        )

    def _shown_to(self, sender: Sender) -> PrivacyClass | None:
        if self.is_open_at_first and sender.is_local and not self._authority.has_accounts:
            return "member"
        return "names" if self._is_named(sender) else self._shown_to_all

    def _is_named(self, sender: Sender) -> bool:
        """Whether names are shown to whoever asks: only if the address is surely that of the client itself."""
        if not self._named_networks or not sender.is_certain:
            return False
        address = ip_address(sender.address)
        return any(address in network for network in self._named_networks)

    def is_current(self, viewer: Viewer) -> bool:
        """Tell whether someone who was let in earlier would be let in as the same now."""
        if viewer.account is None:
            shown = (self._shown_to_all, "names" if self._named_networks else None)
            return viewer.privacy in shown or not self._authority.has_accounts
        return self._authority.is_current(viewer, now=self._clock.wall())

    async def refresh(self, changed: str | None = None) -> None:
        """Read all accounts anew, and which keys still hold. ``Failed`` if the records do not answer.

        ``changed`` is the account that has just been changed: if it cannot be read, nobody is let in as that one
        until it can. Those who ask while another waits share one reading.
        """
        self._wanted = own = self._wanted + 1
        async with self._refreshing:  # or an older answer could come last
            if self._done < own:
                await self._read_anew()
            if self._trouble is not None:
                if changed is not None:
                    self._authority.shut_out(changed)
                raise Failed(str(self._trouble)) from self._trouble

    async def _read_anew(self) -> None:
        served = self._wanted  # what these have changed is in the records already
        try:
            for _ in range(3):
                digests = self._authority.digests()
                known = await self._calls.run(load_known, self._records, digests, self._clock.wall())
                if digests.keys() >= self._authority.digests().keys():
                    break  # nobody has come in meanwhile
        except Failed as error:
            self._trouble = error
        else:
            self._trouble = None
            self._authority.learn(known)
        self._done = served

    async def note_use(self) -> None:
        """Write down which keys were used. Every minute."""
        seen = self._authority.take_seen()
        if seen:
            await self._calls.run(self._touch, seen, self._clock.wall())

    def _touch(self, seen: dict[str, bool], now: float) -> None:
        for key_id, is_token in seen.items():
            touch = self._records.touch_token if is_token else self._records.touch_session
            touch(key_id, now)

    async def watch(self) -> None:
        """See what others (the command line, another hub) have changed. Every second."""
        revision = await self._calls.run(self._records.revision)
        if revision != self._authority.revision:
            await self.refresh()
