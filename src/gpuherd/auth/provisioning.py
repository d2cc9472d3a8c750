"""Accounts of people for whom other services vouch: made at the first login, brought up to date at each."""

from __future__ import annotations

import logging
from typing import get_args

from msgspec import Struct

from gpuherd.auth.settings import LoginSettings
from gpuherd.auth.ways import VouchedFor
from gpuherd.model.errors import Refused
from gpuherd.model.people import Account, AccountSource, Actor, Role
from gpuherd.records.people import PeopleRecords

__all__ = ["Provisioning", "RoleRules"]

log = logging.getLogger(__name__)

_PREFIXES = tuple(f"{source}:" for source in get_args(AccountSource))


class RoleRules(Struct, frozen=True, kw_only=True):
    """Which groups make someone what. A group may be written with its source, as in ``ldap:admins``."""

    default_role: Role = "member"
    admin_groups: frozenset[str] = frozenset()
    member_groups: frozenset[str] = frozenset()

    @classmethod
    def of(cls, settings: LoginSettings) -> RoleRules:
        """Take them from the ``[login]`` table."""
        return cls(
            default_role=settings.default_role,
            admin_groups=frozenset(settings.admin_groups),
            member_groups=frozenset(settings.member_groups),
        )

    def role(self, vouched: VouchedFor, current: Role | None) -> Role:
        """Give someone's role from now on; ``current`` is that of an account which exists already.

        Where no groups are named for a role, or the service tells of none, what an admin has given by hand stays.
        """
        if vouched.groups is None:
            return current or self.default_role
        groups = {f"{vouched.source}:{group}" for group in vouched.groups}
        # One service's group that is called "ldap:admins" is not the directory's.
        groups |= {group for group in vouched.groups if not group.startswith(_PREFIXES)}
        if groups & self.admin_groups or (current == "admin" and not self.admin_groups):
            return "admin"
        if self.member_groups:
            return "member" if groups & self.member_groups else self.default_role
        return self.default_role if current in (None, "admin") else current


class Provisioning:
    """Finds the account of a person, or makes it. Blocking."""

    def __init__(self, records: PeopleRecords, rules: RoleRules) -> None:
        self._records = records
        self._rules = rules

    def account_of(self, vouched: VouchedFor, *, now: float, by: Actor) -> Account:
        """Give the account with the groups and the role that the person has now.

        A person is known by what the service calls them for ever, never by the name alone: who has the name of someone
        else is not that one. ``Refused``: ``name_taken`` by an account that another service, or another person of this
        one, has; ``account_disabled``; ``last_admin`` if the only admin has lost that role.
        """
        account = self._records.account_by_subject(vouched.source, vouched.subject)
        if account is None:
            account = self._create(vouched, now, by)
        if account.is_disabled:
            raise Refused("account_disabled", "your account here was closed; ask an admin of this hub")
        return self._renew(account, vouched, now, by)

    def _create(self, vouched: VouchedFor, now: float, by: Actor) -> Account:
        role = self._rules.role(vouched, None)
        try:
            # Without the names on the nodes, which may be another's: that must not keep the person out.
            return self._records.create_account(
                name=vouched.name,
                display_name=vouched.display_name,
                role=role,
                source=vouched.source,
                subject=vouched.subject,
                groups=vouched.groups or (),
                now=now,
                by=by,
            )
        except Refused as refusal:
            if refusal.code != "name_taken":
                raise
            # The same person may have come in by another door at the same moment.
            account = self._records.account_by_subject(vouched.source, vouched.subject)
            if account is None:
                raise Refused(
                    "name_taken",
                    f"the name {vouched.name} belongs to another account of this hub; ask an admin to rename or "
                    "remove that one",
                ) from None
            return account

    def _renew(self, account: Account, vouched: VouchedFor, now: float, by: Actor) -> Account:
        role = self._rules.role(vouched, account.role)
        groups = account.groups if vouched.groups is None else vouched.groups
        if (account.role, account.groups) != (role, groups):
            try:
                account = self._records.change_account(account.id, role=role, groups=groups, now=now, by=by)
            except Refused as refusal:
                if refusal.code != "last_admin":
                    raise
                raise Refused(
                    "last_admin",
                    "you are no longer in a group of admins, but the only admin of this hub; make someone else one on "
                    "the hub's machine (`gpuherd user role NAME admin`), then log in again",
                ) from None
        return self._with_linux_names(account, vouched, now, by)

    def _with_linux_names(self, account: Account, vouched: VouchedFor, now: float, by: Actor) -> Account:
        """Take over the names on the nodes if they have changed; what an admin has added stays until then."""
        if set(vouched.linux_names) <= set(account.linux_names):
            return account
        try:
            return self._records.change_account(account.id, linux_names=vouched.linux_names, now=now, by=by)
        except Refused as refusal:
            if refusal.code != "linux_name_taken":
                raise
            log.warning("account %s: %s; an admin can fix this", account.id, refusal)
            return account
