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

    async def new_setup_code(self) -> str | None:
        """Make the code of a set-up link; none if there is an admin."""
        return await self.calls.run(new_setup_code, self.records.people, self.clock.wall())

    async def shorten_audit(self) -> None:
        """Forget entries of the audit log that are older than they are kept."""
        before = self.clock.wall() - self.audit_days * 86_400
        await self.calls.run(self.records.audit.prune, before)

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
    )
