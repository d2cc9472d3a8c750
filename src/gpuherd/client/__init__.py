"""A typed client of the hub's API, with nothing but the standard library and msgspec: it starts fast on any node.

Its modules are loaded when something of them is asked for: help and completion of commands need few of them.
"""

from importlib import import_module
from typing import TYPE_CHECKING

__all__ = ["HubClient", "HubLine", "HubRefused", "HubSilent", "Login", "LoginFile"]

if TYPE_CHECKING:
    from gpuherd.client.errors import HubRefused, HubSilent
    from gpuherd.client.hub import HubClient
    from gpuherd.client.line import HubLine
    from gpuherd.client.login_file import Login, LoginFile
else:
    _MODULES = {
        "HubClient": "hub",
        "HubLine": "line",
        "HubRefused": "errors",
        "HubSilent": "errors",
        "Login": "login_file",
        "LoginFile": "login_file",
    }

    def __getattr__(name):
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
