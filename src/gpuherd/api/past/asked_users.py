"""Whose use is meant by the names that a viewer gives."""

from __future__ import annotations

from gpuherd.api.history_service import UsageFilter
from gpuherd.api.past.faces import PastFace
from gpuherd.api.past.ranges import Range
from gpuherd.history.usage.asking import Device, UsageReader, UseFilter

__all__ = ["raw_filter", "raw_users"]


def raw_users(
    reader: UsageReader, face: PastFace, span: Range, *, user: str | None = None, group: str | None = None
) -> frozenset[str | None]:
    """Give the users of the nodes whom the viewer calls so, and who are in that group; none if it knows no such.

    Found among those who are shown, never by the name itself: who sees pseudonyms cannot find out with a name whether
    there is someone who is called so.
    """
    table = reader.figures("user", span.start, span.end)
    return frozenset(
        row.key
        for row in table.rows
        if isinstance(row.key, str)
        and (user is None or face.user(row.key) == user)
        and (group is None or group in face.groups(row.key))
    )


def raw_filter(reader: UsageReader, face: PastFace, span: Range, only: UsageFilter) -> UseFilter:
    """Give a filter as use is kept: with users as nodes call them. Blocking."""
    is_of_people = only.user is not None or only.group is not None
    return UseFilter(
        users=raw_users(reader, face, span, user=only.user, group=only.group) if is_of_people else None,
        nodes=None if only.node is None else frozenset({only.node}),
        types=None if only.type is None else frozenset({only.type}),
        jobs=None if only.job is None else frozenset({only.job}),
        devices=None if only.device is None else _devices(face, only.device, only.node),
    )


def _devices(face: PastFace, text: str, node_id: str | None) -> frozenset[Device]:
    """Find a device by its UUID, on the node that is named or those that have it now; or by node id, colon, UUID."""
    if node_id is not None:
        return frozenset({(node_id, text.removeprefix(f"{node_id}:"))})
    node, _, uuid = text.partition(":")
    return frozenset({*face.nodes_with(text), (node, uuid)})
