"""A real Consul on loopback ports of its own, with or without access control."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support.authority import Certificate
from support.running import PATIENCE_SECONDS, free_port

__all__ = ["Consul", "consul_program", "running_consul"]

_UNPACKED = Path("/opt/gpuherd-test/consul/usr/bin/consul")


def consul_program() -> str | None:
    """Find Consul where ``scripts/provision`` unpacks it, or on the path."""
    return str(_UNPACKED) if _UNPACKED.exists() else shutil.which("consul")


class Consul:
    """A running Consul and what is told to it."""

    def __init__(
        self, port: int, process: subprocess.Popen[bytes], token: str | None, tls_port: int | None = None
    ) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.tls_url = None if tls_port is None else f"https://127.0.0.1:{tls_port}"
        self.process = process
        self.token = token

    def call(self, method: str, path: str, content: object = None) -> Any:
        """Speak to Consul's API as its owner."""
        headers = {} if self.token is None else {"X-Consul-Token": self.token}
        body = None if content is None else json.dumps(content).encode()
        request = urllib.request.Request(self.url + path, data=body, headers=headers, method=method)  # noqa: S310
        with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as answer:  # noqa: S310 - our own http address
            text = answer.read()
        return json.loads(text) if text.strip() else None

    def register(self, node: str, address: str, service: str = "gpu", **more: object) -> None:
        """Put a service on a node into the catalogue."""
        self.call(
            "PUT",
            "/v1/catalog/register",
            {"Node": node, "Address": address, "Service": {"Service": service, "Port": 7080}, **more},
        )

    def deregister(self, node: str) -> None:
        """Take a node out of the catalogue."""
        self.call("PUT", "/v1/catalog/deregister", {"Node": node})

    def is_ready(self) -> bool:
        """Tell whether it takes registrations: it has a leader, and access control is set up."""
        try:
            self.call("PUT", "/v1/catalog/register", {"Node": "ready", "Address": "127.0.0.9"})
            self.call("PUT", "/v1/catalog/deregister", {"Node": "ready"})
        except (urllib.error.URLError, OSError):
            return False
        return True


@contextmanager
def running_consul(
    program: str, folder: Path, *, token: str | None = None, certificate: Certificate | None = None
) -> Iterator[Consul]:
    """Run Consul in development mode; with ``token`` as the owner's and everyone else denied.

    With ``certificate`` it listens with TLS too.
    """
    ports = {name: free_port() for name in ("http", "dns", "server", "serf_lan", "serf_wan")}
    config: dict[str, Any] = {
        "ports": {**ports, "grpc": -1, "https": -1},
        "node_name": "consul-itself",
        "disable_update_check": True,
        "telemetry": {"disable_hostname": True},
    }
    if token is not None:
        config["acl"] = {
            "enabled": True,
            "default_policy": "deny",
            "tokens": {"master": token, "agent": token},
        }
    tls_port = None
    if certificate is not None:
        tls_port = config["ports"]["https"] = free_port()
        config["cert_file"], config["key_file"] = str(certificate.file), str(certificate.key)
    file = folder / "consul.json"
    file.write_text(json.dumps(config))
    with (folder / "consul.log").open("wb") as log:
        process = subprocess.Popen(
            [program, "agent", "-dev", "-bind=127.0.0.1", "-client=127.0.0.1", f"-config-file={file}"],
            stdout=log,
            stderr=log,
            cwd=folder,
        )
    try:
        consul = Consul(ports["http"], process, token, tls_port)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not consul.is_ready():
            log_end = (folder / "consul.log").read_text(errors="replace")[-2000:]
            assert process.poll() is None, log_end
            assert time.monotonic() < deadline, log_end
            time.sleep(0.2)
        yield consul
    finally:
        process.kill()
        process.wait(timeout=PATIENCE_SECONDS)
