"""Accounts and what belongs to them: keys, groups, everything that is kept about a person; the audit log."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from typing import Protocol, TypeVar

from msgspec import UNSET, UnsetType, structs

from gpuherd.api.command_reads import ACTION as COMMANDS_READ
from gpuherd.api.errors import HttpError
from gpuherd.api.identity import Identity
from gpuherd.api.open_records import OpenRecords
from gpuherd.api.people_views import (
    AccountChange,
    AccountExport,
    AccountRequest,
    AuditFilter,
    CreatedAccount,
    CreatedToken,
    FeedView,
    KeptSession,
    KeptToken,
    PasswordChange,
    TemporaryPassword,
    TokenRequest,
)
from gpuherd.api.reception import Reception, actor_of, shown_name
from gpuherd.api.record_calls import RecordCalls
from gpuherd.api.sender import Sender
from gpuherd.auth.names import account_name
from gpuherd.auth.passwords import check_new_password, random_password
from gpuherd.auth.tokens import create_token
from gpuherd.fleet.clock import Clock
from gpuherd.model.errors import Refused
from gpuherd.model.history import UsageSession
from gpuherd.model.people import Account, AuditEntry, Viewer
from gpuherd.model.text import clean
from gpuherd.records.audit import Deed

__all__ = ["PeopleDesk", "PersonalPast"]

EXPORTED_AUDIT_ENTRIES = 100_000
_AUDIT_PAGE = 1000

T = TypeVar("T")


def _own(viewer: Viewer) -> Account:
    if viewer.account is None:  # the route asks for a login, so this is a mistake of ours
        raise HttpError(401, "login_needed", "log in first")
    return viewer.account


def _labels(texts: Collection[str] | UnsetType, path: str) -> tuple[str, ...] | None:
    """Check names of groups or users; none if nothing is said."""
    if texts is UNSET:
        return None
    for text in texts:
        if not text or clean(text) != text or text != text.strip():
            raise HttpError(422, "bad_text", "a name is empty or contains invisible characters", path=path)
    return tuple(sorted(set(texts)))


class PersonalPast(Protocol):
    """What is remembered of people's use. ``Failed`` if it cannot be read or forgotten."""

    async def export(self, account: Account) -> list[UsageSession]:
        """Give all of a person's stays on devices."""

    async def erase(self, account: Account) -> None:
        """Forget whose they were."""


class PeopleDesk:
    """What people and admins do with accounts. Who may is checked before; whose it is, here."""

    def __init__(
        self,
        *,
        records: OpenRecords,
        calls: RecordCalls,
        identity: Identity,
        reception: Reception,
        clock: Clock,
    ) -> None:
        self._people = records.people
        self._audit = records.audit
        self._bookings = records.bookings
        self._calls = calls
        self._identity = identity
        self._reception = reception
        self._clock = clock
        self._exporting: set[str] = set()
        """Accounts that an export is being made for right now."""
        self.past: PersonalPast | None = None
        """None: no use is remembered."""

    async def _change(self, account_id: str | None, verb: Callable[[], T]) -> T:
        """Change something that bears on what that account may do, and have it hold at once."""
        done = await self._calls.run(verb)
        await self._identity.refresh(account_id)
        return done

    # -- one's own ---------------------------------------------------------------------------------------------

    async def rename(self, viewer: Viewer, display_name: str) -> Account:
        """Change what others read."""
        own = _own(viewer)
        return await self._change(
            own.id,
            partial(
                self._people.change_account,
                own.id,
                display_name=shown_name(display_name, own.name),
                now=self._clock.wall(),
                by=actor_of(viewer),
            ),
        )

    async def change_password(self, viewer: Viewer, change: PasswordChange, sender: Sender) -> None:
        """Change one's own password; all tokens, calendars and other sessions end.

        ``Refused`` ``password_wrong``, ``password_weak`` or ``password_elsewhere``.
        """
        own = _own(viewer)
        if own.source != "local":
            raise Refused("password_elsewhere", f"your password is managed by {own.source}; change it there")
        check_new_password(change.new_password, own.name)
        await self._reception.check_own_password(own, change.old_password, sender)
        password_hash = await self._reception.hash(change.new_password)
        await self._change(
            own.id,
            partial(
                self._people.set_password,
                own.id,
                password_hash,
                now=self._clock.wall(),
                by=actor_of(viewer),
                keep_session=viewer.key if viewer.via == "session" else None,
            ),
        )

    async def sessions(self, viewer: Viewer) -> list[KeptSession]:
        """List one's own logins."""
        return await self._calls.run(self._sessions_of, _own(viewer).id, viewer.key)

    def _sessions_of(self, account_id: str, current: str | None) -> list[KeptSession]:
        return [
            KeptSession(
                id=session.id,
                created_at=session.created_at,
                expires_at=session.expires_at,
                seen_at=session.seen_at,
                peer=session.peer,
                agent=session.agent,
                is_current=session.id == current,
            )
            for session in self._people.sessions(account_id, self._clock.wall())
        ]

    async def end_session(self, viewer: Viewer, session_id: str) -> None:
        """End one of one's own logins; 404 for anyone else's."""
        ended = await self._change(
            _own(viewer).id,
            partial(
                self._people.end_session,
                session_id,
                account_id=_own(viewer).id,
                now=self._clock.wall(),
                by=actor_of(viewer),
            ),
        )
        if not ended:
            raise HttpError(404, "unknown_session", "you have no such session; it may have ended")

    async def end_other_sessions(self, viewer: Viewer) -> None:
        """End all of one's own logins but this one."""
        await self._end_sessions(_own(viewer).id, viewer, keep=viewer.key)

    async def tokens(self, viewer: Viewer) -> list[KeptToken]:
        """List one's own tokens."""
        return await self._calls.run(self._tokens_of, _own(viewer).id)

    def _tokens_of(self, account_id: str) -> list[KeptToken]:
        return [
            KeptToken(
                id=token.id,
                title=token.title,
                scopes=tuple(sorted(token.scopes)),
                created_at=token.created_at,
                expires_at=token.expires_at,
                seen_at=token.seen_at,
            )
            for token in self._people.tokens(account_id, self._clock.wall())
        ]

    async def create_token(self, viewer: Viewer, request: TokenRequest) -> CreatedToken:
        """Make a token for oneself; ``Refused`` ``scope_needs_role`` or ``too_many_tokens``."""
        now, title = self._clock.wall(), clean(request.title.strip())
        token = await self._calls.run(
            create_token,
            self._people,
            _own(viewer),
            title=title,
            scopes=frozenset(request.scopes),
            days=request.days,
            now=now,
            by=actor_of(viewer),
        )
        return CreatedToken(
            id=token.id,
            token=token.secret,
            title=title,
            scopes=tuple(sorted(token.scopes)),
            created_at=now,
            expires_at=token.expires_at,
        )

    async def end_token(self, viewer: Viewer, token_id: str) -> None:
        """End one of one's own tokens; 404 for anyone else's."""
        ended = await self._change(
            _own(viewer).id,
            partial(
                self._people.end_token,
                token_id,
                account_id=_own(viewer).id,
                now=self._clock.wall(),
                by=actor_of(viewer),
            ),
        )
        if not ended:
            raise HttpError(404, "unknown_token", "you have no such token; it may have ended")

    async def export_own(self, viewer: Viewer) -> AccountExport:
        """Give everything that is kept about oneself; ``HttpError`` 429 while one is being made."""
        own = _own(viewer)
        return await self._exported(own.id, own.id)

    async def erase_own(self, viewer: Viewer, *, name: str, password: str, sender: Sender) -> None:
        """Forget oneself. ``Refused`` ``name_wrong`` or ``password_wrong`` if it was not meant."""
        own = _own(viewer)
        if name != own.name:
            raise Refused("name_wrong", "type your own name to confirm the deletion of all your data")
        await self._reception.check_own_password(own, password, sender)
        await self._erase(own.id, viewer)

    # -- anyone's, for admins ----------------------------------------------------------------------------------

    async def accounts(self) -> tuple[Account, ...]:
        """List all accounts."""
        return (await self._calls.run(self._people.load)).accounts

    async def account(self, account_id: str) -> Account:
        """Give one account."""
        account = await self._calls.run(self._people.account, account_id)
        if account is None:
            raise HttpError(404, "unknown_account", "there is no such account")
        return account

    async def create_account(self, viewer: Viewer, request: AccountRequest) -> CreatedAccount:
        """Make a local account, with a password made up for it unless one is given."""
        name = account_name(request.name)
        password = request.password or random_password()
        check_new_password(password, name)
        password_hash = await self._reception.hash(password)
        account = await self._change(
            None,
            partial(
                self._people.create_account,
                name=name,
                display_name=shown_name(request.display_name, name),
                role=request.role,
                password_hash=password_hash,
                linux_names=_labels(request.linux_names, "linux_names") or (),
                groups=_labels(request.groups, "groups") or (),
                now=self._clock.wall(),
                by=actor_of(viewer),
            ),
        )
        return CreatedAccount(account=account, password=None if request.password else password)

    async def change_account(self, viewer: Viewer, account_id: str, change: AccountChange) -> Account:
        """Change anyone's account; ``Refused`` ``last_admin``, ``linux_name_taken`` or ``unknown_account``."""
        name = None
        if change.display_name is not UNSET:
            name = shown_name(change.display_name, (await self.account(account_id)).name)
        return await self._change(
            account_id,
            partial(
                self._people.change_account,
                account_id,
                display_name=name,
                role=None if change.role is UNSET else change.role,
                groups=_labels(change.groups, "groups"),
                linux_names=_labels(change.linux_names, "linux_names"),
                is_disabled=None if change.is_disabled is UNSET else change.is_disabled,
                now=self._clock.wall(),
                by=actor_of(viewer),
            ),
        )

    async def reset_password(self, viewer: Viewer, account_id: str) -> TemporaryPassword:
        """Give someone a new password, made up here; all sessions, tokens and calendars end."""
        account = await self.account(account_id)
        if account.source != "local":
            raise Refused(
                "password_elsewhere", f"this password is managed by {account.source}; change it there"
            )
        password = random_password()
        password_hash = await self._reception.hash(password)
        await self._change(
            account_id,
            partial(
                self._people.set_password,
                account_id,
                password_hash,
                now=self._clock.wall(),
                by=actor_of(viewer),
            ),
        )
        return TemporaryPassword(password=password)

    async def log_out_everywhere(self, viewer: Viewer, account_id: str) -> None:
        """End all of someone's sessions, and the addresses of their calendars."""
        await self.account(account_id)
        await self._end_sessions(account_id, viewer, keep=None, with_feeds=True)

    async def erase(self, viewer: Viewer, account_id: str) -> None:
        """Forget someone; ``Refused`` ``unknown_account`` or ``last_admin``."""
        await self._erase(account_id, viewer)

    async def export(self, viewer: Viewer, account_id: str) -> AccountExport:
        """Give everything that is kept about someone; ``HttpError`` 429 while one is being made for who asks.

        Whole command lines are in it: who reads those of someone else has an entry in the audit log.
        """
        own = _own(viewer)
        await self.account(account_id)
        if account_id != own.id:
            deed = Deed(
                COMMANDS_READ, account_id, "all data stored about them", actor_of(viewer), self._clock.wall()
            )
            await self._calls.run(self._audit.append, [deed])
        return await self._exported(account_id, own.id)

    async def audit(self, wanted: AuditFilter) -> tuple[AuditEntry, ...]:
        """Search the audit log, the newest first."""
        return await self._calls.run(
            self._audit.search,
            text=wanted.text,
            action=wanted.action,
            account_id=wanted.account_id,
            since=wanted.since,
            until=wanted.until,
            before_id=wanted.before_id,
            limit=wanted.limit,
        )

    # -- both --------------------------------------------------------------------------------------------------

    async def _end_sessions(
        self, account_id: str, viewer: Viewer, *, keep: str | None, with_feeds: bool = False
    ) -> None:
        await self._change(
            account_id,
            partial(
                self._people.end_sessions,
                account_id,
                now=self._clock.wall(),
                by=actor_of(viewer),
                keep=keep,
                with_feeds=with_feeds,
            ),
        )

    async def _erase(self, account_id: str, viewer: Viewer) -> None:
        if self.past is not None:
            # Before the account, which knows whose use it is; and not at all if the account has to stay.
            await self.past.erase(await self._calls.run(self._erasable, account_id))
        await self._change(
            account_id,
            partial(self._people.erase_account, account_id, now=self._clock.wall(), by=actor_of(viewer)),
        )

    async def _exported(self, account_id: str, asker_id: str) -> AccountExport:
        """One at a time for everyone who asks: it may be large, and holds a thread of the records."""
        if asker_id in self._exporting:
            raise HttpError(
                429,
                "export_running",
                "your data is already being exported; wait for it to finish",
                headers={"Retry-After": "5"},
            )
        self._exporting.add(asker_id)
        try:
            exported = await self._calls.run(self._export, account_id)
            if self.past is None:
                return exported
            return structs.replace(exported, usage=await self.past.export(exported.account))
        finally:
            self._exporting.discard(asker_id)

    def _erasable(self, account_id: str) -> Account:
        """Give an account that may go; ``Refused`` as the records would."""
        accounts = self._people.load().accounts
        account = next((one for one in accounts if one.id == account_id), None)
        if account is None:
            raise Refused("unknown_account", "there is no such account")
        admins = [one.id for one in accounts if one.role == "admin" and not one.is_disabled]
        if admins == [account_id]:
            raise Refused(
                "last_admin", "this is the last admin who can log in; make someone else an admin first"
            )
        return account

    def _export(self, account_id: str) -> AccountExport:
        account = self._people.account(account_id)
        if account is None:
            raise Refused("unknown_account", "there is no such account")
        return AccountExport(
            exported_at=self._clock.wall(),
            account=account,
            sessions=self._sessions_of(account_id, None),
            tokens=self._tokens_of(account_id),
            feeds=[
                FeedView(id=feed.id, kind=feed.kind, device=feed.device, created_at=feed.created_at)
                for feed in self._people.feeds(account_id)
            ],
            bookings=list(self._bookings.of_account(account_id)),
            audit=self._audit_of(account_id),
        )

    def _audit_of(self, account_id: str) -> list[AuditEntry]:
        entries: list[AuditEntry] = []
        before_id: int | None = None
        while len(entries) < EXPORTED_AUDIT_ENTRIES:
            page = self._audit.search(account_id=account_id, before_id=before_id, limit=_AUDIT_PAGE)
            # From where someone else acted is no matter of this person.
            entries += [
                entry if entry.account_id == account_id else structs.replace(entry, peer=None)
                for entry in page
            ]
            if len(page) < _AUDIT_PAGE:
                break
            before_id = page[-1].id
        return entries
