"""The tables ``[login.pam]``, ``[login.ldap]``, ``[login.oidc]`` and ``[login.proxy]`` of gpuherd.toml."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

__all__ = ["LdapSettings", "OidcSettings", "PamSettings", "ProxySettings"]

HeaderName = Annotated[str, Meta(pattern=r"^[A-Za-z][A-Za-z0-9-]{0,63}$")]
Groups = Annotated[
    tuple[str, ...],
    Meta(description="Only people in one of these groups can log in. Empty: everyone with an account there."),
]


class PamSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The ``[login.pam]`` table: log in with an account of the machine that the hub runs on."""

    service: Annotated[
        str,
        Meta(
            pattern=r"^[A-Za-z0-9._-]{1,64}$",
            description="PAM service: the file in /etc/pam.d with the rules.",
        ),
    ] = "gpuherd"
    min_uid: Annotated[
        int, Meta(ge=0, description="Users with a lower number, such as root and daemons, cannot log in.")
    ] = 1000
    allowed_groups: Groups = ()
    deadline_seconds: Annotated[
        float, Meta(ge=1, le=20, description="After this time, the check is stopped and the login fails.")
    ] = 10.0


class LdapSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The ``[login.ldap]`` table: log in with an account of a directory."""

    url: Annotated[
        str, Meta(description="The directory, such as ldaps://ldap.example.org; ldap:// needs starttls.")
    ]
    starttls: Annotated[
        bool, Meta(description="Switch an ldap:// connection to TLS before anything else.")
    ] = False
    insecure: Annotated[
        bool,
        Meta(description="Send passwords in clear text. Only for tests on one machine."),
    ] = False
    tls_ca_file: Annotated[
        Path | None, Meta(description="Certificates (PEM) to trust instead of the system's own.")
    ] = None
    search_base: Annotated[
        str | None, Meta(description="Where to search for people, such as ou=people,dc=example,dc=org.")
    ] = None
    user_filter: Annotated[
        str,
        Meta(
            description="How to find a person; {name} is the name that was typed. Active Directory: "
            "sAMAccountName."
        ),
    ] = "(uid={name})"
    bind_dn: Annotated[
        str | None,
        Meta(description="Account for the search; needs a password file. Default: anonymous."),
    ] = None
    bind_password_file: Annotated[
        Path | None, Meta(description="File with that account's password; read for each login.")
    ] = None
    user_dn: Annotated[
        str | None,
        Meta(description="Instead of a search: the entry of a person, such as uid={name},ou=people,dc=…"),
    ] = None
    subject_attribute: Annotated[
        str,
        Meta(
            description="Attribute that stays the same when someone is renamed. Active Directory: objectGUID; "
            "FreeIPA: ipaUniqueID."
        ),
    ] = "entryUUID"
    name_attribute: Annotated[
        str, Meta(description="Attribute with the account's name. Active Directory: sAMAccountName.")
    ] = "uid"
    display_name_attribute: Annotated[str, Meta(description="Display name that others see.")] = "cn"
    linux_name_attribute: Annotated[
        str | None, Meta(description="Linux name of the person, if it differs from the account's name.")
    ] = None
    member_of_attribute: Annotated[
        str | None,
        Meta(
            description="Attribute with a person's groups; not used with group_base. Empty: admins manage groups."
        ),
    ] = "memberOf"
    group_base: Annotated[
        str | None,
        Meta(description="Where to search for groups instead, such as ou=groups,dc=example,dc=org."),
    ] = None
    group_filter: Annotated[
        str,
        Meta(description="How to find a person's groups; {dn} is the entry, {name} the account's name."),
    ] = "(|(member={dn})(uniqueMember={dn})(memberUid={name}))"
    group_name_attribute: Annotated[str, Meta(description="Name of a group.")] = "cn"
    allowed_groups: Groups = ()
    deadline_seconds: Annotated[
        float,
        Meta(ge=1, le=20, description="Longest wait for the directory, for all steps of a login together."),
    ] = 10.0


class OidcSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The ``[login.oidc]`` table: log in at an OpenID Connect provider, such as Keycloak, Entra ID, GitLab."""

    issuer: Annotated[str, Meta(description="The provider's issuer, exactly as the provider states it.")]
    client_id: Annotated[str, Meta(min_length=1, description="The hub's client id at the provider.")]
    client_secret_file: Annotated[
        Path | None, Meta(description="File with the client's secret. None: a public client.")
    ] = None
    redirect_url: Annotated[
        str | None,
        Meta(
            description="The hub's address as registered at the provider, ending in /api/v1/login/oidc/callback. "
            "Default: made from the address in the browser, if that is a name in hub.allowed_hosts."
        ),
    ] = None
    label: Annotated[
        str, Meta(min_length=1, max_length=60, description="Text of the button after `Continue with`.")
    ] = "single sign-on"
    scopes: Annotated[tuple[str, ...], Meta(description="Scopes to request; must include openid.")] = (
        "openid",
        "profile",
        "email",
    )
    name_claim: Annotated[
        str,
        Meta(description="Claim with the account's name. Dots lead into objects."),
    ] = "preferred_username"
    display_name_claim: Annotated[str, Meta(description="Display name that others see.")] = "name"
    groups_claim: Annotated[
        str,
        Meta(
            description="Claim with a person's groups; Keycloak's roles: realm_access.roles. Empty: admins manage "
            "groups."
        ),
    ] = "groups"
    linux_name_claim: Annotated[
        str | None,
        Meta(
            description="Claim with the person's Linux name, which decides which processes are theirs. Use a "
            "claim that people cannot change themselves. Default: admins assign Linux names."
        ),
    ] = None
    allowed_groups: Groups = ()
    tls_ca_file: Annotated[
        Path | None, Meta(description="Certificates (PEM) to trust instead of the system's own.")
    ] = None
    deadline_seconds: Annotated[
        float,
        Meta(ge=1, le=25, description="Longest wait for the provider, for all requests of a login together."),
    ] = 10.0


class ProxySettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The ``[login.proxy]`` table: believe a proxy that has logged people in and names them in a header."""

    networks: Annotated[
        tuple[str, ...],
        Meta(description="Addresses or networks of the trusted proxies. Empty: hub.trusted_proxies."),
    ] = ()
    user_header: Annotated[
        HeaderName,
        Meta(
            description="Header with the name. The proxy must set it itself and remove what a client sends.",
        ),
    ] = "X-Remote-User"
    display_name_header: Annotated[HeaderName | None, Meta(description="Header with the display name.")] = (
        None
    )
    groups_header: Annotated[
        HeaderName | None, Meta(description="Header with groups, separated by commas.")
    ] = None
    allowed_groups: Groups = ()
