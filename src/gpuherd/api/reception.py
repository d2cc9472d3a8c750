"""Coming in and going out: logging in and out, and setting up."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import NamedTuple, TypeVar

from msgspec import Struct

from gpuherd.api.cookies import session_cookie
from gpuherd.api.errors import HttpError
from gpuherd.api.identity import Identity
from gpuherd.api.open_records import OpenRecords
from gpuherd.api.record_calls import RecordCalls
from gpuherd.api.sender import Sender
from gpuherd.api.sparing_log import SparingLog
from gpuherd.api.threads import BoundedThreads, TooMuchWork
from gpuherd.auth.attempts import FailedAttempts, NameAttempts
from gpuherd.auth.authority import ALL_SCOPES, Authority, Key
from gpuherd.auth.failed_logins import FailedLogins
from gpuherd.auth.names import account_name
from gpuherd.auth.passwords import Passwords, check_new_password
from gpuherd.auth.provisioning import Provisioning, RoleRules
from gpuherd.auth.secrets import digest
from gpuherd.auth.sessions import begin_session
from gpuherd.auth.settings import LoginSettings
from gpuherd.auth.setup import setup_digest
from gpuherd.auth.ways import LoginWays, VouchedFor
from gpuherd.fleet.clock import Clock
from gpuherd.model.errors import Failed, Refused
from gpuherd.model.people import Account, Actor, Viewer
from gpuherd.model.text import clean, plain_name
from gpuherd.records.audit import Deed

__all__ = ["LoggedIn", "Reception", "actor_of", "shown_name"]

log = logging.getLogger(__name__)

MAX_WAITING_PASSWORDS = 256
MAX_WAITING_OF_ONE = 2
"""Of one address. Not with one name: whoever tries it from many addresses would keep its owner out."""
MAX_LOGINS_BY_NAME = 30
"""Logins with one name per minute, even with the right password."""
FAILURE_SECONDS = 1.0
"""Who tries too often is answered no sooner, so that a flood of logins costs little.

Where services also check passwords, the same holds for wrong ones, whichever service was asked.
"""
PASSWORD_SECONDS = 25.0
"""Less than a request may take: who has waited this long is asked to try again."""
WAY_THREADS = 4
WAY_SECONDS = 25.0
CROWDED = "too many logins at once; try again in a moment"
CROWDED_SECONDS = 5
UNKNOWN_NAME = "unknown name"
QUIET = 5
"""How much the threads that check passwords stand back: whoever looks at the herd comes first."""

T = TypeVar("T")


class LoggedIn(Struct, frozen=True, kw_only=True):
    """A login that has just succeeded."""

    account: Account
    secret: str
    key: str
    lifetime_seconds: float

    def cookie(self, sender: Sender, mount: str) -> str:
        """Give the ``Set-Cookie`` header for whoever logged in."""
        return session_cookie(self.secret, sender, mount, lifetime_seconds=self.lifetime_seconds)

    def viewer(self, sender: Sender) -> Viewer:
        """Give who this is from now on."""
        return Viewer(
            account=self.account,
            privacy="admin" if self.account.role == "admin" else "member",
            scopes=ALL_SCOPES,
            via="session",
            key=self.key,
            peer=sender.address,
        )


class _Proven(NamedTuple):
    """Someone who has shown to be who they say."""

    account: Account
    password_hash: str | None = None
    """What the password was compared with."""


def shown_name(text: str | None, name: str) -> str:
    """Give what others read of someone: a clean line, or the name if nothing of it is left."""
    return clean((text or "").strip()) or name


def actor_of(viewer: Viewer) -> Actor:
    """Give who acts, for the audit log."""
    if viewer.account is None:
        return Actor(account_id=None, label="nobody", peer=viewer.peer)
    return Actor(account_id=viewer.account.id, label=viewer.account.name, peer=viewer.peer)


class Reception:
    """Logs people in and out. Passwords are checked in a few quiet threads; what does not fit is turned away."""

    def __init__(
        self,
        settings: LoginSettings,
        ways: LoginWays,
        *,
        records: OpenRecords,
        calls: RecordCalls,
        identity: Identity,
        authority: Authority,
        clock: Clock,
        passwords: Passwords | None = None,
    ) -> None:
        self._settings = settings
        self._ways = ways
        self._records = records
        self._calls = calls
        self._identity = identity
        self._authority = authority
        self._provisioning = Provisioning(records.people, RoleRules.of(settings))
        self._clock = clock
        self._passwords = passwords or Passwords()
        self._hashing = BoundedThreads(
            "passwords",
            threads=settings.parallel,
            max_waiting=MAX_WAITING_PASSWORDS,
            deadline_seconds=PASSWORD_SECONDS,
            niceness=QUIET,
            max_in_lane=MAX_WAITING_OF_ONE,
        )
        self._asking = BoundedThreads(
            "login ways",
            threads=WAY_THREADS,
            max_waiting=MAX_WAITING_PASSWORDS,
            deadline_seconds=WAY_SECONDS,
            max_in_lane=WAY_THREADS,
        )
        self._attempts = FailedAttempts()
        self._name_attempts = NameAttempts()
        self._logins = FailedAttempts(limit=MAX_LOGINS_BY_NAME, max_senders=16_384, whose="with this name")
        self._failed_logins = FailedLogins()
        self._silent_ways: set[str] = set()
        """Ways that failed when they were last asked."""
        self._sparing = SparingLog(log, limit=10)

    @property
    def ways(self) -> LoginWays:
        """Ways to log in besides local accounts."""
        return self._ways

    @property
    def is_set_up(self) -> bool:
        """Whether there is an admin who can log in."""
        return self._authority.is_set_up

    async def check_crowd(self, sender: Sender) -> None:
        """Raise ``HttpError`` 429 while too many wait for their password to be checked, there or altogether."""
        if self._hashing.is_full(sender.place, has_place=sender.has_place):
            await asyncio.sleep(FAILURE_SECONDS)
            raise HttpError(429, "too_many_attempts", CROWDED, headers={"Retry-After": str(CROWDED_SECONDS)})

    def close(self) -> None:
        """Check nothing any more."""
        self._hashing.close()
        self._asking.close()

    def takes_passwords(self, sender: Sender) -> bool:
        """Tell whether a password may be sent from there."""
        return sender.is_https or sender.is_local or self._settings.plain_http

    def check_secrecy(self, sender: Sender) -> None:
        """Raise ``HttpError`` 403 ``insecure`` where others could read the password along the way."""
        if not self.takes_passwords(sender):
            raise HttpError(
                403,
                "insecure",
                "passwords are not accepted over plain HTTP, where others could read them: serve HTTPS "
                "(hub.tls_certificate), set the address of an HTTPS proxy (hub.trusted_proxies), or accept the risk "
                "(login.plain_http)",
            )

    # -- coming in ---------------------------------------------------------------------------------------------

    async def log_in(
        self, name: str, password: str, *, sender: Sender, agent: str, before: Viewer
    ) -> LoggedIn:
        """Log in with a name and password.

        ``Refused`` ``login_failed`` for a wrong one of either, ``too_many_attempts`` for the hasty and for a crowd.
        """
        began = self._clock.monotonic()
        try:
            self._attempts.check(sender.place, began)
            self._logins.check(plain_name(name), began)
            proven = await self._prove_once(name, password, sender)
        except (Refused, Failed):
            await self._until_failures_are_told(began)
            raise
        if proven is None:
            # Neither the response time nor the answer may reveal which names exist, and in which service.
            if self._ways.passwords:
                await self._until_failures_are_told(began)
            if self._silent_ways:
                raise self._cannot_ask()
            raise Refused("login_failed", "wrong name or password")
        self._name_attempts.succeeded(name, sender.address)
        now = self._clock.monotonic()
        self._logins.check(plain_name(name), now)  # others may have come in meanwhile
        self._logins.failed(plain_name(name), now)
        return await self._begin(proven, sender=sender, agent=agent, before=before)

    async def _until_failures_are_told(self, began: float) -> None:
        await asyncio.sleep(began + FAILURE_SECONDS - self._clock.monotonic())

    async def _prove_once(self, name: str, password: str, sender: Sender) -> _Proven | None:
        """Check the password; for a name that was tried too often, only if the account is local.

        Nobody can lock a local account by trying its name. A wrong password gets the same answer for every name.
        """
        refusal: Refused | None = None
        if self._ways.passwords:
            try:
                self._name_attempts.begin(name, sender.address, self._clock.monotonic())
            except Refused as error:
                refusal = error
        account, kept = await self._calls.run(self._look_up, name)
        proven = None
        if refusal is None or kept is not None:
            proven = await self._prove(name, password, sender, account, kept)
        if proven is None:
            await self._count_failure(name, sender)
            if refusal is not None:
                raise refusal
        return proven

    async def enter(self, vouched: VouchedFor, *, sender: Sender, agent: str, before: Viewer) -> LoggedIn:
        """Log in someone for whom another service vouches; ``Refused`` if that person may not enter here."""
        account = await self.account_for(vouched, sender)
        return await self._begin(_Proven(account), sender=sender, agent=agent, before=before)

    async def account_for(self, vouched: VouchedFor, sender: Sender) -> Account:
        """Give the account of someone for whom another service vouches, made or brought up to date if need be."""
        by = Actor(account_id=None, label=f"login by {vouched.source}", peer=sender.address)
        account = await self._calls.run(self._provisioning.account_of, vouched, now=self._clock.wall(), by=by)
        known = self._authority.account(account.id)
        if known is None or (known.role, known.groups) != (account.role, account.groups):
            await self._identity.refresh()
        return self._authority.account(account.id) or account

    async def set_up(
        self, code: str, *, name: str, display_name: str | None, password: str, sender: Sender, agent: str
    ) -> LoggedIn:
        """Make the first admin with the code of the set-up link, and log in.

        ``Refused`` ``code_invalid``, ``setup_done``, ``name_invalid`` or ``password_weak``.
        """
        self._attempts.check(sender.place, self._clock.monotonic())
        by = Actor(account_id=None, label="set-up link", peer=sender.address)
        try:
            # First what costs nothing: anyone may ask.
            if self.is_set_up:
                raise Refused("setup_done", "this hub already has an admin; log in instead")  # noqa: TRY301
            wanted = setup_digest(code)
            name = account_name(name)
            check_new_password(password, name)
            password_hash = await self.hash(password)
            account = await self._calls.run(
                self._records.people.take_setup_code,
                wanted,
                name=name,
                display_name=shown_name(display_name, name),
                password_hash=password_hash,
                now=self._clock.wall(),
                by=by,
            )
        except Refused:
            self._attempts.failed(sender.place, self._clock.monotonic())
            raise
        await self._identity.refresh()
        nobody = Viewer(privacy=None, peer=sender.address)
        return await self._begin(_Proven(account), sender=sender, agent=agent, before=nobody)

    async def log_out(self, viewer: Viewer) -> None:
        """End the session of whoever asks; nothing happens to someone who has none."""
        if viewer.via == "session" and viewer.key is not None:
            await self._end(viewer.key, viewer, "logout")

    # -- passwords ---------------------------------------------------------------------------------------------

    async def hash(self, password: str) -> str:
        """Give what is kept of a password; ``Refused`` ``too_many_attempts`` if too many are at it."""
        return await self._slowly(lambda: self._passwords.hash(password))

    async def check_own_password(self, account: Account, password: str, sender: Sender) -> None:
        """Let someone who is logged in prove to be there in person; ``Refused`` ``password_wrong`` otherwise.

        For accounts without a password here there is nothing to prove.
        """
        self._attempts.check(sender.place, self._clock.monotonic())
        kept = await self._calls.run(self._records.people.password_hash, account.id)
        if kept is None:
            return
        if not await self._slowly(lambda: self._passwords.matches(password, kept), sender):
            self._attempts.failed(sender.place, self._clock.monotonic())
            raise Refused("password_wrong", "this is not your password")

    async def _slowly(self, work: Callable[[], T], sender: Sender | None = None) -> T:
        """Do the work in a thread; addresses take turns."""
        place, has_place = (None, False) if sender is None else (sender.place, sender.has_place)
        try:
            return await self._hashing.run_in_lane(place, work, has_place=has_place)
        except (TooMuchWork, TimeoutError):
            raise Refused("too_many_attempts", CROWDED) from None

    async def _prove(
        self, name: str, password: str, sender: Sender, account: Account | None, kept: str | None
    ) -> _Proven | None:
        if account is None or account.source != "local":
            vouched = await self._ask_ways(name, password, account, sender)
            if vouched is not None:
                return _Proven(await self.account_for(vouched, sender))
            if self._ways.passwords and account is not None:
                return None
        is_right = await self._slowly(lambda: self._passwords.matches(password, kept), sender)
        if not is_right or kept is None or account is None or account.is_disabled:
            return None
        if self._passwords.is_outdated(kept):
            kept = await self._renewed(account, password, kept)
        return None if kept is None else _Proven(account, kept)

    async def _renewed(self, account: Account, password: str, kept: str) -> str | None:
        """Keep a better hash of a right password, and give what is kept then; none if it was replaced meanwhile."""
        better = await self.hash(password)
        try:
            await self._calls.run(self._records.people.rehash_password, account.id, kept, better)
        except Refused:  # by a new password, or by another login that was quicker to renew it
            latest = await self._calls.run(self._records.people.password_hash, account.id)
            is_right = await self._slowly(lambda: self._passwords.matches(password, latest))
            return latest if is_right else None
        return better

    def _look_up(self, name: str) -> tuple[Account | None, str | None]:
        account = self._records.people.account_by_name(name)
        if account is None or account.source != "local":
            return account, None
        return account, self._records.people.password_hash(account.id)

    async def _ask_ways(
        self, name: str, password: str, account: Account | None, sender: Sender
    ) -> VouchedFor | None:
        """Ask elsewhere: the service that vouched before, or all of them in turn for someone new."""
        has_failed = False
        for way in self._ways.passwords:
            if account is not None and way.name != account.source:
                continue
            try:
                check = partial(way.check, name, password)
                vouched = await self._asking.run_in_lane(sender.place, check, has_place=sender.has_place)
            except TooMuchWork:
                raise Refused("too_many_attempts", CROWDED) from None
            except (TimeoutError, Failed) as error:
                # Its own text may name addresses that are nobody's business who is not logged in.
                self._sparing.warning(
                    way.name, f"the login service {way.name} failed: {str(error) or 'no response in time'}"
                )
                self._silent_ways.add(way.name)
                has_failed = True
            else:
                self._silent_ways.discard(way.name)
                if vouched is not None:
                    return vouched
        if has_failed:
            raise self._cannot_ask()
        return None

    def _cannot_ask(self) -> Failed:
        return Failed(
            "wrong name or password, or a login service that does not respond now "
            f"({', '.join(sorted(self._silent_ways))}); try again later, or ask an admin: the hub's log says why"
        )

    # -- sessions ----------------------------------------------------------------------------------------------

    async def _begin(self, proven: _Proven, *, sender: Sender, agent: str, before: Viewer) -> LoggedIn:
        account = proven.account
        lifetime_seconds = self._settings.session_days * 86_400
        now, generation = self._clock.wall(), self._authority.generation
        session = await self._calls.run(
            begin_session,
            self._records.people,
            account,
            now=now,
            lifetime_seconds=lifetime_seconds,
            agent=agent,
            by=_person(account, sender),
            password_hash=proven.password_hash,
        )
        if self._authority.account(account.id) is None:
            await self._identity.refresh()
            generation = self._authority.generation
        self._authority.keep(
            digest(session.secret),
            Key(
                id=session.id,
                account_id=account.id,
                expires_at=session.expires_at,
                scopes=ALL_SCOPES,
                is_token=False,
            ),
            generation=generation,
        )
        if before.via == "session" and before.key is not None:
            await self._end(before.key, before, "logout")
        return LoggedIn(
            account=account, secret=session.secret, key=session.id, lifetime_seconds=lifetime_seconds
        )

    async def tell_of_login(self, account: Account, sender: Sender) -> None:
        """Write a login that makes no session into the audit log."""
        deed = Deed("login.ok", account.id, account.source, _person(account, sender), self._clock.wall())
        await self._calls.run(self._records.audit.append, [deed])

    async def _end(self, key: str, viewer: Viewer, action: str) -> None:
        await self._calls.run(
            self._records.people.end_session,
            key,
            account_id=None if viewer.account is None else viewer.account.id,
            now=self._clock.wall(),
            by=actor_of(viewer),
            action=action,
        )
        await self._identity.refresh(None if viewer.account is None else viewer.account.id)

    async def _count_failure(self, name: str, sender: Sender) -> None:
        self._attempts.failed(sender.place, self._clock.monotonic())
        detail = self._failed_logins.take(self._clock.monotonic())
        if detail is not None:
            by = Actor(account_id=None, label="nobody", peer=sender.address)
            # Never what was typed: people type their password where the name belongs.
            account = await self._calls.run(self._records.people.account_by_name, name)
            whose = UNKNOWN_NAME if account is None else account.name
            log.warning(
                "login failed for %s from %s%s", whose, sender.address, f" ({detail})" if detail else ""
            )
            subject = UNKNOWN_NAME if account is None else account.id
            deed = Deed("login.failed", subject, detail, by, self._clock.wall())
            await self._calls.run(self._records.audit.append, [deed])


def _person(account: Account, sender: Sender) -> Actor:
    return Actor(account_id=account.id, label=account.name, peer=sender.address)
