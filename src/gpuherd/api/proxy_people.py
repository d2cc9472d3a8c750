"""People whom a proxy names with every request: their accounts, remembered so that not each one costs the records."""

from __future__ import annotations

from collections import OrderedDict

from gpuherd.api.asgi import Scope
from gpuherd.api.legacy.gate import peer_address
from gpuherd.api.reception import Reception
from gpuherd.api.sender import Sender
from gpuherd.auth.authority import Authority
from gpuherd.auth.ways import HeaderWay, VouchedFor
from gpuherd.model.people import Account

__all__ = ["ProxyPeople"]

MAX_PEOPLE = 4096


class ProxyPeople:
    """Finds the account of whom a proxy names; made, or brought up to date, when the proxy tells something new."""

    def __init__(self, way: HeaderWay, *, reception: Reception, authority: Authority) -> None:
        self._way = way
        self._reception = reception
        self._authority = authority
        self._known: OrderedDict[str, tuple[VouchedFor, str]] = OrderedDict()

    async def account(self, scope: Scope, sender: Sender) -> Account | None:
        """Give the account; none if no listed proxy names anyone. ``Refused`` for someone who may not enter."""
        peer = peer_address(scope)
        vouched = None if peer is None else self._way.vouched(scope["headers"], str(peer))
        if vouched is None:
            return None
        before = self._known.get(vouched.subject)
        if before is not None and before[0] == vouched:
            account = self._authority.account(before[1])
            if account is not None:
                self._known.move_to_end(vouched.subject)
                return account
        account = await self._reception.account_for(vouched, sender)
        await self._reception.tell_of_login(account, sender)
        self._known[vouched.subject] = (vouched, account.id)
        while len(self._known) > MAX_PEOPLE:
            self._known.popitem(last=False)
        return account
