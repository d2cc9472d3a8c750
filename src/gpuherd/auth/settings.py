"""How people log in: the ``[login]`` table of gpuherd.toml."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from gpuherd.auth.way_settings import LdapSettings, OidcSettings, PamSettings, ProxySettings
from gpuherd.model.people import Role

__all__ = ["LoginSettings"]


class LoginSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The ``[login]`` table of gpuherd.toml: how people log in, and their roles."""

    session_days: Annotated[
        float, Meta(ge=0.04, le=366, description="How long a login lasts, in days; 0.04 is an hour.")
    ] = 7.0
    plain_http: Annotated[
        bool,
        Meta(
            description="Accept passwords over plain HTTP from other machines. Anyone on the network path can "
            "then read them. Serve HTTPS instead, or use a proxy (hub.trusted_proxies)."
        ),
    ] = False
    parallel: Annotated[
        int,
        Meta(
            ge=1,
            le=16,
            description="How many passwords are checked at a time. Each check takes one core and 64 MiB for a "
            "moment, so that guessing is slow. Attempts beyond a short queue are rejected.",
        ),
    ] = 2
    default_role: Annotated[
        Role,
        Meta(
            description="Role of people who log in through PAM, LDAP, OIDC or a proxy, unless one of their groups "
            "below gives another."
        ),
    ] = "member"
    admin_groups: Annotated[
        tuple[str, ...], Meta(description="Groups of these services whose members are admins.")
    ] = ()
    member_groups: Annotated[
        tuple[str, ...],
        Meta(
            description="Groups of these services whose members get the role member. With default_role = "
            '"viewer", everyone else can only look.'
        ),
    ] = ()
    pam: Annotated[PamSettings | None, Meta(description="Accounts of the hub's machine.")] = None
    ldap: Annotated[LdapSettings | None, Meta(description="Accounts of a directory.")] = None
    oidc: Annotated[OidcSettings | None, Meta(description="Single sign-on.")] = None
    proxy: Annotated[ProxySettings | None, Meta(description="A proxy that authenticates people.")] = None
