"""The tables ``[login.pam]``, ``[login.ldap]``, ``[login.oidc]`` and ``[login.proxy]`` of gpuherd.toml."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

__all__ = ["LdapSettings", "OidcSettings", "PamSettings", "ProxySettings"]

HeaderName = Annotated[str, Meta(pattern=r"^[A-Za-z][A-Za-z0-9-]{0,63}$")]
Groups = Annotated[
    tuple[str, ...],
    Meta(description="Only people in one of these groups may enter; everyone who can log in if it is empty."),
]


class PamSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The ``[login.pam]`` table: log in with an account of the machine that the hub runs on."""

    service: Annotated[
        str,
        Meta(
            pattern=r"^[A-Za-z0-9._-]{1,64}$",
            description="PAM service, that is the file in /etc/pam.d whose rules hold.",
        ),
    ] = "gpuherd"
    min_uid: Annotated[
        int, Meta(ge=0, description="Users with a lower number, such as root and daemons, may not enter.")
    ] = 1000
    allowed_groups: Groups = ()
    deadline_seconds: Annotated[
        float, Meta(ge=1, le=20, description="After this the check is ended and the login fails.")
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
        Meta(description="Send passwords over the network in clear text. Only for a try on one machine."),
    ] = False
    tls_ca_file: Annotated[
        Path | None, Meta(description="Certificates (PEM) to trust instead of the system's own.")
    ] = None
    search_base: Annotated[
        str | None, Meta(description="Where people are looked for, such as ou=people,dc=example,dc=org.")
    ] = None
    user_filter: Annotated[
        str, Meta(description="How one is found; {name} is what was typed. Active Directory: sAMAccountName.")
    ] = "(uid={name})"
    bind_dn: Annotated[
        str | None,
        Meta(description="Account that may search; anonymous unless given. Needs a password file."),
    ] = None
    bind_password_file: Annotated[
        Path | None, Meta(description="File with that account's password; read anew for each login.")
    ] = None
    user_dn: Annotated[
        str | None,
        Meta(description="Instead of searching: a person's own entry, such as uid={name},ou=people,dc=…"),
    ] = None
    subject_attribute: Annotated[
        str,
        Meta(
            description="What stays when someone is renamed. Active Directory: objectGUID; FreeIPA: ipaUniqueID."
        ),
    ] = "entryUUID"
    name_attribute: Annotated[
        str, Meta(description="Name of the account. Active Directory: sAMAccountName.")
    ] = "uid"
    display_name_attribute: Annotated[str, Meta(description="What others read.")] = "cn"
    linux_name_attribute: Annotated[
        str | None, Meta(description="Name of the person on the nodes, if it is not that of the account.")
    ] = None
    member_of_attribute: Annotated[
        str | None,
        Meta(
            description="Lists a person's groups in the own entry; not used with group_base. Empty: groups are kept by "
            "hand."
        ),
    ] = "memberOf"
    group_base: Annotated[
        str | None,
        Meta(description="Where groups are looked for instead, such as ou=groups,dc=example,dc=org."),
    ] = None
    group_filter: Annotated[
        str,
        Meta(description="How a person's groups are found; {dn} is the entry, {name} the account's name."),
    ] = "(|(member={dn})(uniqueMember={dn})(memberUid={name}))"
    group_name_attribute: Annotated[str, Meta(description="Name of a group.")] = "cn"
    allowed_groups: Groups = ()
    deadline_seconds: Annotated[
        float, Meta(ge=1, le=20, description="Longest wait for the directory, all steps of a login together.")
    ] = 10.0


class OidcSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The ``[login.oidc]`` table: log in at an OpenID Connect provider, such as Keycloak, Entra ID, GitLab."""

    issuer: Annotated[str, Meta(description="The provider's issuer, exactly as it calls itself.")]
    client_id: Annotated[str, Meta(min_length=1, description="What the provider knows this hub as.")]
    client_secret_file: Annotated[
        Path | None, Meta(description="File with the client's secret; none for a public client.")
    ] = None
    redirect_url: Annotated[
        str | None,
        Meta(
            description="The hub's address that is registered at the provider, ending in /api/v1/login/oidc/callback. "
            "Unless given, made from the address that the browser used, if that is a name of hub.allowed_hosts."
        ),
    ] = None
    label: Annotated[
        str, Meta(min_length=1, max_length=60, description="What the button says after `Continue with`.")
    ] = "single sign-on"
    scopes: Annotated[tuple[str, ...], Meta(description="What is asked for; always with openid.")] = (
        "openid",
        "profile",
        "email",
    )
    name_claim: Annotated[
        str,
        Meta(
            description="Name of the account. One that people cannot change by themselves: it also tells whose "
            "processes are one's own. Dots lead into objects."
        ),
    ] = "preferred_username"
    display_name_claim: Annotated[str, Meta(description="What others read.")] = "name"
    groups_claim: Annotated[
        str,
        Meta(
            description="A person's groups; Keycloak's roles: realm_access.roles. Empty: groups are kept by hand."
        ),
    ] = "groups"
    linux_name_claim: Annotated[
        str | None, Meta(description="Name of the person on the nodes, if it is not that of the account.")
    ] = None
    allowed_groups: Groups = ()
    tls_ca_file: Annotated[
        Path | None, Meta(description="Certificates (PEM) to trust instead of the system's own.")
    ] = None
    deadline_seconds: Annotated[
        float,
        Meta(ge=1, le=25, description="Longest wait for the provider, all questions of a login together."),
    ] = 10.0


class ProxySettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The ``[login.proxy]`` table: believe a proxy that has logged people in and names them in a header."""

    networks: Annotated[
        tuple[str, ...],
        Meta(
            description="Addresses or networks of the proxies that are believed; hub.trusted_proxies if empty."
        ),
    ] = ()
    user_header: Annotated[
        HeaderName,
        Meta(
            description="Header with the name. The proxy must set it itself and drop what a client sends.",
        ),
    ] = "X-Remote-User"
    display_name_header: Annotated[HeaderName | None, Meta(description="Header with what others read.")] = (
        None
    )
    groups_header: Annotated[
        HeaderName | None, Meta(description="Header with groups, commas between them.")
    ] = None
    allowed_groups: Groups = ()
