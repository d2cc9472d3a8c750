"""People's records as one: accounts, and the keys with which they come in."""

from __future__ import annotations

from gpuherd.records.account_rows import name_key
from gpuherd.records.accounts import AccountRecords, People
from gpuherd.records.keys import FeedKind, FeedRecord, KeyRecords, SessionRecord, TokenRecord

__all__ = [
    "FeedKind",
    "FeedRecord",
    "People",
    "PeopleRecords",
    "SessionRecord",
    "TokenRecord",
    "name_key",
]


class PeopleRecords(AccountRecords, KeyRecords):
    """People's records. Blocking, one transaction per verb; trouble is ``Failed``, a broken rule ``Refused``."""
