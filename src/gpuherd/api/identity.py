"""Who makes a request."""

from __future__ import annotations

from gpuherd.api.asgi import Scope
from gpuherd.api.settings import HubSettings
from gpuherd.model.people import PrivacyClass, Viewer

__all__ = ["OpenHub"]


class OpenHub:
    """Everyone is nobody, and sees what the hub shows in public."""

    def __init__(self, settings: HubSettings) -> None:
        shown: dict[str | None, PrivacyClass | None] = {
            "off": None,
            "counts": "counts",
            "read": "public",
            # Only on loopback, or the hub would not have started.
            None: "member",
        }
        self._privacy = shown[settings.public]

    async def viewer(self, scope: Scope) -> Viewer:
        """Give someone without an account."""
        client = scope.get("client")
        return Viewer(privacy=self._privacy, peer=str(client[0]) if client else "unknown")
