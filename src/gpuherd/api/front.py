"""What stands between a request and the hub: the records, who is who, and the reception, put together."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from gpuherd.api.identity import Identity
from gpuherd.api.open_records import OpenRecords
from gpuherd.api.people import PeopleDesk
from gpuherd.api.proxy_people import ProxyPeople
from gpuherd.api.reception import Reception
from gpuherd.api.record_calls import RecordCalls
from gpuherd.api.settings import HubSettings
from gpuherd.auth.authority import Authority
from gpuherd.auth.settings import LoginSettings
from gpuherd.auth.setup import new_setup_code
from gpuherd.auth.ways import LoginWays
from gpuherd.fleet.clock import Clock
from gpuherd.history.trusted_time import TrustedTime

__all__ = ["Front", "open_front"]


class Front(Struct, frozen=True, kw_only=True):
    """The people's side of a running hub."""

    records: OpenRecords
    calls: RecordCalls
    authority: Authority
    identity: Identity
    reception: Reception
    people: PeopleDesk
    clock: Clock
    audit_days: int
    trusted: TrustedTime

    async def new_setup_code(self) -> str | None:
        """Make the code of a set-up link; none if there is an admin."""
        return await self.calls.run(new_setup_code, self.records.people, self.clock.wall())

    async def forget_old(self) -> None:
        """Delete old entries of the audit log and expired keys, once the clock can be trusted."""
        await self.calls.run(self._forget_old)

    def _forget_old(self) -> None:
        now = self.trusted(self.clock.wall())
        if now is None:
            return
        self.records.audit.prune(now - self.audit_days * 86_400, now=now)
        self.records.people.prune(now)
        self.records.nodes.prune_tokens(now)
        self.records.bookings.prune_keys(now)

    def close(self) -> None:
        """End the threads and close the records."""
        self.reception.close()
        self.calls.close()
        self.records.close()


def open_front(
    settings: HubSettings,
    login: LoginSettings,
    ways: LoginWays,
    *,
    records: OpenRecords,
    clock: Clock,
    shown_user: Callable[[str], str],
) -> Front:
    """Put the parts together; nothing is read yet."""
    authority, calls = Authority(shown_user=shown_user), RecordCalls()
    identity = Identity(settings, authority=authority, records=records.people, calls=calls, clock=clock)
    reception = Reception(
        login,
        ways,
        records=records,
        calls=calls,
        identity=identity,
        authority=authority,
        clock=clock,
    )
    if ways.header is not None:
        identity.proxy_word = ProxyPeople(ways.header, reception=reception, authority=authority)
    return Front(
        records=records,
        calls=calls,
        authority=authority,
        identity=identity,
        reception=reception,
        people=PeopleDesk(records=records, calls=calls, identity=identity, reception=reception, clock=clock),
        clock=clock,
        audit_days=settings.audit_days,
        trusted=TrustedTime(
            settings.state_dir / "trusted-time.json",
            is_new=False,
            wall=clock.wall,
            monotonic=clock.monotonic,
            of="records",
        ),
    )
