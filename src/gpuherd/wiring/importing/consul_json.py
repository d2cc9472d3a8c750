"""fetch_stats_conf.json: where Consul lists the GPU hosts."""

from __future__ import annotations

from pathlib import Path

from gpuherd.discovery.consul.address import service_address
from gpuherd.discovery.settings import ConsulSettings
from gpuherd.model.errors import Misconfigured
from gpuherd.model.json_tables import JsonTable
from gpuherd.wiring.importing.reading import NodesEntry, Note, Reading
from gpuherd.wiring.importing.wishes import Wishes

__all__ = ["KEY", "read_consul_json"]

KEY = "CONSUL_SERVICE_URI"


def read_consul_json(content: JsonTable, file: Path, wishes: Wishes) -> Reading:
    """Take the service's address; its hosts are known by their node names, as in the old tool."""
    url, line = content[KEY], content.lines[KEY]
    if not isinstance(url, str):
        raise Misconfigured(f"{file}:{line}: {KEY} must be an address in quotation marks")
    try:
        address = service_address(ConsulSettings(url=url))
    except Misconfigured as error:
        reason = str(error).removeprefix("find.url: ").removeprefix("find.service: ")
        raise Misconfigured(f"{file}:{line}: {KEY}: {reason}") from error
    by = wishes.by or "http_files"
    notes = [Note(line, f"{KEY}: {address.place}; its hosts are reached by {by}, under their node names")]
    if wishes.by is None:
        notes.append(
            Note(
                None,
                "their files are fetched from port 8114, as fetch_stats.py does; choose another "
                "connection with --by",
            )
        )
    notes += [Note(content.lines[key], f"{key}: not needed", False) for key in content if key != KEY]
    find = {"in": "consul", "url": address.url, "use_node_name": True}
    entry = NodesEntry(reach={"by": by}, find=find)
    return Reading(
        file=str(file), what="the address of a Consul service", notes=tuple(notes), entries=(entry,)
    )
