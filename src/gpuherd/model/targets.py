"""Nodes that the hub asks by itself: what they are called and where they are."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from gpuherd.model.text import Label, Sentence

__all__ = ["NodeWay", "Target"]

NodeWay = Literal["push", "pull", "ssh", "file", "gpustat", "node_info", "xmlrpc", "http_files"]
"""How a node's reports reach the hub. The last three are protocols of older tools."""

Port = Annotated[int, Meta(ge=1, le=65_535)]
GpuCount = Annotated[int, Meta(ge=0, le=512)]


class Target(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A node as a list, an inventory or a service names it."""

    name: Annotated[
        Label, Meta(min_length=1, description="Name in the list; the node's id is derived from it.")
    ]
    address: Annotated[Label, Meta(min_length=1, description="Host name, IP address or SSH alias.")]
    port: Annotated[Port | None, Meta(description="None: the connection's usual port.")] = None
    user: Annotated[Label | None, Meta(description="User to log in as, if the list has one.")] = None
    key_file: Annotated[str | None, Meta(description="SSH key, if the list has one.")] = None
    proxy_jump: Annotated[str | None, Meta(description="SSH jump host, if the list has one.")] = None
    expected_gpus: Annotated[
        GpuCount | None, Meta(description="Number of GPUs according to the inventory.")
    ] = None
    place: Annotated[Sentence, Meta(description="Where it was found, such as hosts.txt:3.")] = ""
