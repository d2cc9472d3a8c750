"""How people log in: the ``[login]`` table of gpuherd.toml."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from gpuherd.auth.way_settings import LdapSettings, OidcSettings, PamSettings, ProxySettings
from gpuherd.model.people import Role

__all__ = ["LoginSettings"]


class LoginSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The ``[login]`` table of gpuherd.toml: how people log in and what they may do then."""

    session_days: Annotated[
        float, Meta(ge=0.04, le=366, description="How long a login lasts, in days; 0.04 is an hour.")
    ] = 7.0
    plain_http: Annotated[
        bool,
        Meta(
            description="Take passwords over plain HTTP from other machines. Anyone on the network between can read "
            "them then; serve HTTPS instead, or let a proxy do it (hub.trusted_proxies)."
        ),
    ] = False
    parallel: Annotated[
        int,
        Meta(
            ge=1,
            le=16,
            description="Passwords checked at a time. Each takes one core and 64 MiB for a moment, so that guessing is "
            "slow; attempts beyond a short queue are turned away.",
        ),
    ] = 2
    default_role: Annotated[
        Role,
        Meta(
            description="Role of people whom PAM, LDAP, OIDC or a proxy vouch for, unless a group below says otherwise."
        ),
    ] = "member"
    admin_groups: Annotated[
        tuple[str, ...], Meta(description="Groups of those services whose people are admins here.")
    ] = ()
    member_groups: Annotated[
        tuple[str, ...],
        Meta(
            description='Groups of those services whose people are members here; with default_role = "viewer" all '
            "others only look."
        ),
    ] = ()
    pam: Annotated[PamSettings | None, Meta(description="Accounts of the hub's machine.")] = None
    ldap: Annotated[LdapSettings | None, Meta(description="Accounts of a directory.")] = None
    oidc: Annotated[OidcSettings | None, Meta(description="Single sign-on.")] = None
    proxy: Annotated[ProxySettings | None, Meta(description="A proxy that names people.")] = None
