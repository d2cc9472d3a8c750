"""``GET /get-status`` as the main node of an older HTTP tool answers it, for its page and scripts."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import msgspec

from gpuherd.api.asgi import Receive, Scope, Send, answer
from gpuherd.api.errors import HttpError
from gpuherd.api.guard import Guard
from gpuherd.api.legacy.gate import Gate
from gpuherd.api.legacy.serving import Answer, serve
from gpuherd.api.legacy.whole_gpus import WholeGpu, local_time, mebibytes, percent, rounded, whole_gpus
from gpuherd.api.networks import parse_networks
from gpuherd.api.sender import Senders
from gpuherd.fleet.views import FleetView, NodeView
from gpuherd.sources.settings import GetStatusSettings

__all__ = ["GetStatusApp", "status_of"]

_UNSAFE = str.maketrans(dict.fromkeys("<>&\"'", "\N{REPLACEMENT CHARACTER}"))


def status_of(node: NodeView) -> dict[str, Any]:
    """Give a node in the old shape: MiB, percent, °C; unknown is null. Down is what has been silent too long.

    The old page writes texts into itself as HTML, so they are given without what HTML could be made of.
    """
    gpus = whole_gpus(node)
    own_name = None if node.host is None else node.host.hostname
    status: dict[str, Any] = {"hostname": _harmless(own_name or node.name)}
    if node.host is not None and node.received_at is not None:
        status["last_update"] = local_time(node.received_at)
        status["ips"] = [
            [_harmless(address.interface), _harmless(address.ip)]
            for address in node.host.addresses
            if address.interface != "lo"
            and not address.interface.startswith("docker")
            and ":" not in address.ip
        ]
    status["gpus"] = [_gpu(gpu) for gpu in gpus]
    status["status"] = node.state in ("live", "stale")
    status["version"] = _harmless(gpus[0].device.facts.name) if gpus else ""
    return status


def _gpu(gpu: WholeGpu) -> dict[str, Any]:
    facts, sample = gpu.device.facts, gpu.device.sample
    return {
        "index": facts.index,
        "name": _harmless(facts.name),
        "use_mem": mebibytes(sample.memory_used_bytes),
        "tot_mem": mebibytes(facts.memory_total_bytes),
        "utilize": percent(sample.utilization_gpu),
        "temp": rounded(sample.temperature_celsius),
        "users": [
            {
                "pid": process.pid,
                "mem(MiB)": mebibytes(process.gpu_memory_bytes),
                "username": _harmless(process.user or "?"),
                "command": None if process.command is None else _harmless(process.command),
            }
            for process in gpu.processes
            if process.kind == "compute"
        ],
    }


def _harmless(text: str) -> str:
    return text.translate(_UNSAFE)


class GetStatusApp:
    """The ASGI application of the ``[legacy.get_status]`` table."""

    def __init__(
        self,
        settings: GetStatusSettings,
        *,
        fleet_view: Callable[[], FleetView],
        guard: Guard,
        senders: Senders,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._gate = Gate(
            parse_networks(settings.networks, "legacy.get_status.networks"),
            requests_per_second=settings.requests_per_second,
            monotonic=monotonic,
        )
        self._fleet_view = fleet_view
        self._guard = guard
        self._senders = senders
        self._made: tuple[int, bytes] = (-1, b"")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        answering = Answer(send)
        await serve(scope, answering, self._serve(scope, answering))

    async def _serve(self, scope: Scope, send: Send) -> None:
        self._gate.check(scope, is_let_in=self._senders.is_own_program(scope))
        if scope["type"] != "http" or scope["path"] != "/get-status":
            raise HttpError(
                404, "not_found", "only /get-status is served here; the page is at the hub's own address"
            )
        if scope["method"] not in ("GET", "HEAD"):
            raise HttpError(405, "method_not_allowed", "read with GET", headers={"Allow": "GET, HEAD"})
        self._guard.check(scope, is_sensitive=False)
        body = self._body()
        headers = [(b"content-type", b"application/json"), (b"cache-control", b"no-store")]
        await answer(send, 200, headers, b"" if scope["method"] == "HEAD" else body)

    def _body(self) -> bytes:
        """Make the answer once per tick, however many ask."""
        view = self._fleet_view()
        if self._made[0] != view.tick:
            body = msgspec.json.encode({"Nodes": [status_of(node) for node in view.nodes]}) + b"\n"
            self._made = (view.tick, body)
        return self._made[1]
