"""Nodes that run an older tool and are asked by the hub."""

from __future__ import annotations

from gpuherd.collect.scrub import scrub
from gpuherd.sources.following import Way
from gpuherd.sources.http_files import HttpFilesWay
from gpuherd.sources.node_info import NodeInfoWay
from gpuherd.sources.settings import HttpFilesSettings, NodeInfoSettings, XmlRpcSettings
from gpuherd.sources.xmlrpc import XmlRpcWay
from gpuherd.wiring.ways.surroundings import Surroundings, located

__all__ = ["http_files_way", "node_info_way", "xmlrpc_way"]


def http_files_way(settings: HttpFilesSettings, surroundings: Surroundings) -> Way:
    """Fetch the files that nodes of an older tool serve."""
    return HttpFilesWay(located(settings, surroundings.folder), scrub=scrub)


def node_info_way(settings: NodeInfoSettings, surroundings: Surroundings) -> Way:
    """Ask nodes of the older HTTP tool."""
    return NodeInfoWay(located(settings, surroundings.folder), scrub=scrub)


def xmlrpc_way(settings: XmlRpcSettings, surroundings: Surroundings) -> Way:
    """Ask nodes of the older XML-RPC tool."""
    return XmlRpcWay(located(settings, surroundings.folder), scrub=scrub)
