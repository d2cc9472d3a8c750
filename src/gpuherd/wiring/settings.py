"""The tables of gpuherd.toml that join parts: which nodes the hub asks, and the doors for older tools."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from gpuherd.discovery.settings import FindSettings
from gpuherd.model.errors import Misconfigured
from gpuherd.sources.settings import GetStatusSettings, GpustatSettings, ReachSettings

__all__ = ["LegacySettings", "NodesSettings"]


class NodesSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A ``[[nodes]]`` table: nodes that the hub connects to: which ones, and how."""

    reach: Annotated[
        ReachSettings, Meta(description="How the hub reaches them; the key `by` selects the connection.")
    ]
    hosts: Annotated[
        tuple[str, ...],
        Meta(
            max_length=100_000,
            description="The nodes: host, host:port, user@host, or name=host to set the node's name.",
        ),
    ] = ()
    find: Annotated[
        FindSettings | None,
        Meta(description="A list to read them from instead; the key `in` selects its kind."),
    ] = None

    def check(self) -> None:
        """Raise ``Misconfigured`` unless exactly one of ``hosts`` and ``find`` names the nodes."""
        if bool(self.hosts) == (self.find is not None):
            raise Misconfigured("set either hosts = […] or find = {…}")


class LegacySettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The ``[legacy]`` table: doors for older tools that know no credentials; closed unless opened here."""

    gpustat: Annotated[
        GpustatSettings | None, Meta(description="Accept posts of `run-this-on-every-node.sh`.")
    ] = None
    get_status: Annotated[
        GetStatusSettings | None, Meta(description="Answer GET /get-status for pages of the older HTTP tool.")
    ] = None
