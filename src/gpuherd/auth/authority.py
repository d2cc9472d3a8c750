"""Who is who right now, in memory: asked for every request, so no database is on that way.

What is known of accounts is replaced as a whole when the records' revision has changed; keys (sessions and tokens) are
learnt when they are first shown.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping

from msgspec import Struct, structs

from gpuherd.model.people import SCOPES, Account, PrivacyClass, TokenScope, Viewer
from gpuherd.records.people import PeopleRecords, SessionRecord, TokenRecord

__all__ = ["ALL_SCOPES", "Authority", "Key", "Known", "find_key", "load_known", "shown_to"]

MAX_KEYS = 10_000
ALL_SCOPES: frozenset[TokenScope] = frozenset(SCOPES)


class Key(Struct, frozen=True, kw_only=True):
    """A session or an API token, without its secret."""

    id: str
    account_id: str
    expires_at: float
    scopes: frozenset[TokenScope]
    is_token: bool


class Known(Struct, frozen=True, kw_only=True):
    """Accounts and keys as of one revision of the records."""

    revision: int
    accounts: tuple[Account, ...]
    keys: dict[str, Key]
    """By the digest of their secret."""


class Authority:
    """Accounts by id, keys by the digest of their secret. All methods are called on the event loop."""

    def __init__(
        self, *, shown_user: Callable[[str], str] = lambda name: name, max_keys: int = MAX_KEYS
    ) -> None:
        """``shown_user`` tells under which name a user of the nodes is known: someone's alias is that someone."""
        self._shown_user = shown_user
        self._max_keys = max_keys
        self._accounts: dict[str, Account] = {}
        self._keys: OrderedDict[str, Key] = OrderedDict()
        self._expiries: dict[str, float] = {}
        self._seen: dict[str, bool] = {}
        self.revision: int | None = None
        self.generation = 0
        """Counted up whenever what was known is replaced. A key that was looked up before is not kept after."""

    def learn(self, known: Known) -> None:
        """Replace everything."""
        self._accounts = {account.id: self._with_aliases(account) for account in known.accounts}
        self._keys = OrderedDict(known.keys)
        self._expiries = {key.id: key.expires_at for key in known.keys.values()}
        self.revision = known.revision
        self.generation += 1

    def shut_out(self, account_id: str) -> None:
        """Let nobody in as this account until everything is learnt anew: it has changed, but not known is how."""
        account = self._accounts.get(account_id)
        if account is not None:
            self._accounts[account_id] = structs.replace(account, is_disabled=True)
        for digest in [digest for digest, key in self._keys.items() if key.account_id == account_id]:
            del self._expiries[self._keys.pop(digest).id]
        self.revision = None
        self.generation += 1

    def _with_aliases(self, account: Account) -> Account:
        names = {*account.linux_names, *map(self._shown_user, account.linux_names)}
        return structs.replace(account, linux_names=tuple(sorted(names)))

    def digests(self) -> dict[str, bool]:
        """Give the digests of all known keys, and which of them are tokens."""
        return {digest: key.is_token for digest, key in self._keys.items()}

    @property
    def has_accounts(self) -> bool:
        """Whether anyone has ever been given an account."""
        return bool(self._accounts)

    @property
    def is_set_up(self) -> bool:
        """Whether there is an admin who can log in."""
        return any(account.role == "admin" and not account.is_disabled for account in self._accounts.values())

    def account(self, account_id: str) -> Account | None:
        """Give an account, also a disabled one."""
        return self._accounts.get(account_id)

    def accounts(self) -> tuple[Account, ...]:
        """Give all accounts, also disabled ones."""
        return tuple(self._accounts.values())

    def key(self, digest: str) -> Key | None:
        """Give a key that is known already; it may have expired."""
        key = self._keys.get(digest)
        if key is not None:
            self._keys.move_to_end(digest)
        return key

    def keep(self, digest: str, key: Key, *, generation: int) -> None:
        """Remember a key that was looked up in that generation; what was looked up before a change is not kept."""
        if generation != self.generation:
            return
        self._keys[digest] = key
        self._expiries[key.id] = key.expires_at
        while len(self._keys) > self._max_keys:
            _, dropped = self._keys.popitem(last=False)
            del self._expiries[dropped.id]

    def viewer(self, key: Key, *, now: float, peer: str) -> Viewer | None:
        """Give who holds a key; none if it has expired or the account is gone or disabled."""
        account = self._accounts.get(key.account_id)
        if account is None or account.is_disabled or key.expires_at <= now:
            return None
        self._seen[key.id] = key.is_token
        return Viewer(
            account=account,
            privacy=shown_to(account, key.scopes),
            scopes=key.scopes,
            via="token" if key.is_token else "session",
            key=key.id,
            expires_at=key.expires_at,
            peer=peer,
        )

    def take_seen(self) -> dict[str, bool]:
        """Give the ids of the keys that were used since the last call, and which of them are tokens."""
        seen, self._seen = self._seen, {}
        return seen

    def is_current(self, viewer: Viewer, *, now: float) -> bool:
        """Tell whether someone with an account who was let in earlier would be let in as the same today."""
        if viewer.account is None:
            return False
        account = self._accounts.get(viewer.account.id)
        if account is None or account.is_disabled or not _is_alike(account, viewer.account):
            return False
        if viewer.expires_at is not None and viewer.expires_at <= now:
            return False
        return viewer.key is None or self._expiries.get(viewer.key, 0.0) > now


def load_known(records: PeopleRecords, digests: Mapping[str, bool], now: float) -> Known:
    """Read accounts, and which of these keys still hold. Blocking; ``Failed`` if the records cannot be read."""
    people = records.load()
    # Many at a time: every change of anyone's rights waits for this.
    sessions = records.sessions_among([digest for digest, is_token in digests.items() if not is_token], now)
    tokens = records.tokens_among([digest for digest, is_token in digests.items() if is_token], now)
    keys = {digest: _key(session, ALL_SCOPES, is_token=False) for digest, session in sessions.items()}
    keys |= {digest: _key(token, token.scopes, is_token=True) for digest, token in tokens.items()}
    return Known(
        revision=people.revision,
        accounts=people.accounts,
        # In the order in which they were last used: the first go first when there are too many.
        keys={digest: keys[digest] for digest in digests if digest in keys},
    )


def find_key(records: PeopleRecords, digest: str, now: float, *, is_token: bool) -> Key | None:
    """Look up a session or token; none if there is no such. Blocking; ``Failed`` if the records cannot be read."""
    if is_token:
        token = records.token(digest, now)
        return None if token is None else _key(token, token.scopes, is_token=True)
    session = records.session(digest, now)
    return None if session is None else _key(session, ALL_SCOPES, is_token=False)


def _key(record: TokenRecord | SessionRecord, scopes: frozenset[TokenScope], *, is_token: bool) -> Key:
    return Key(
        id=record.id,
        account_id=record.account_id,
        expires_at=record.expires_at,
        scopes=scopes,
        is_token=is_token,
    )


def shown_to(account: Account, scopes: frozenset[TokenScope]) -> PrivacyClass | None:
    """Give what an account is shown; nothing with a token that may not read."""
    if "read" not in scopes:
        return None
    return "admin" if account.role == "admin" and "admin" in scopes else "member"


def _is_alike(one: Account, other: Account) -> bool:
    return one is other or structs.replace(one, last_login_at=None) == structs.replace(
        other, last_login_at=None
    )
