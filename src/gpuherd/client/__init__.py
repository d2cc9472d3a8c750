"""A typed client of the hub's API, with nothing but the standard library and msgspec: it starts fast on any node."""

from gpuherd.client.errors import HubRefused, HubSilent
from gpuherd.client.hub import HubClient
from gpuherd.client.line import HubLine
from gpuherd.client.login_file import Login, LoginFile

__all__ = ["HubClient", "HubLine", "HubRefused", "HubSilent", "Login", "LoginFile"]
