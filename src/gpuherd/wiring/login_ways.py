"""The ways to log in that gpuherd.toml names, besides local accounts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gpuherd.agent.spec import resolve
from gpuherd.auth.settings import LoginSettings
from gpuherd.auth.ways import HeaderWay, LoginWays, PasswordWay, RedirectWay
from gpuherd.model.errors import Misconfigured
from gpuherd.wiring.catalog import LOGIN_WAYS
from gpuherd.wiring.ways.surroundings import located

__all__ = ["login_ways"]


def login_ways(settings: LoginSettings, *, trusted_proxies: tuple[str, ...], folder: Path) -> LoginWays:
    """Make them; ``Misconfigured`` for one that could not work. Connects to nothing."""
    _check_role_groups(settings)
    passwords: list[PasswordWay] = [
        _made(name, getattr(settings, name), folder)
        for name in ("pam", "ldap")
        if getattr(settings, name) is not None
    ]
    redirect: RedirectWay | None = None
    if settings.oidc is not None:
        redirect = _made("oidc", settings.oidc, folder)
    header: HeaderWay | None = None
    if settings.proxy is not None:
        header = _made("proxy", settings.proxy, folder, trusted_proxies=trusted_proxies)
    return LoginWays(passwords=tuple(passwords), redirect=redirect, header=header)


def _check_role_groups(settings: LoginSettings) -> None:
    """Raise ``Misconfigured`` for a group that two services could both have: one of them may let anyone make groups."""
    sources = [name for name in LOGIN_WAYS if getattr(settings, name) is not None]
    if len(sources) < 2:
        return
    for key in ("admin_groups", "member_groups"):
        for group in getattr(settings, key):
            if not group.startswith(tuple(f"{source}:" for source in sources)):
                meant = " or ".join(f'"{source}:{group}"' for source in sources)
                raise Misconfigured(
                    f'login.{key}: the service of the group "{group}" is ambiguous, because several login '
                    f"services are configured; write {meant}"
                )


def _made(name: str, settings: Any, folder: Path, **more: Any) -> Any:
    try:
        return resolve(LOGIN_WAYS[name])(located(settings, folder), **more)
    except Misconfigured as error:
        if isinstance(error.__cause__, ModuleNotFoundError):
            raise Misconfigured(
                f"login.{name}: needs the package {error.__cause__.name}; install it with `pip install "
                f"'gpuherd[{name}]'`"
            ) from error
        raise
