"""Whether a hub still knows a node is asked of the hub that gave its credential, and believed of no one else."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from gpuherd.agent.enrol import hub_file
from gpuherd.agent.settings import AgentSettings
from gpuherd.model.errors import Misconfigured
from gpuherd.wiring.installing.asking import is_refused
from support.hub import running_hub
from support.running import free_port


def test_a_hub_knows_those_that_it_has_admitted(tmp_path: Path) -> None:
    async def story() -> None:
        async with running_hub(tmp_path / "hub") as hub:
            known, unknown = tmp_path / "known", tmp_path / "unknown"
            known.write_text((await hub.admit("gpu01")).credential)
            unknown.write_text(f"{known.read_text()[:-3]}xyz")
            settings = AgentSettings(hub_url=hub.url)
            assert not await asyncio.to_thread(is_refused, settings, known)
            assert await asyncio.to_thread(is_refused, settings, unknown)

    asyncio.run(story())


@contextmanager
def answering(status: int, body: bytes) -> Iterator[tuple[str, list[str]]]:
    """Answer everything so; gives the address, and what was asked with."""
    seen: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            seen.append(self.headers["Authorization"])
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", seen
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (401, b"<html>log in</html>"),
        (403, b'{"error": {"code": "foreign_host", "message": "not here"}}'),
        (503, b'{"error": {"code": "unauthorized", "message": "later"}}'),
    ],
)
def test_what_others_say_is_no_proof(tmp_path: Path, status: int, body: bytes) -> None:
    (tmp_path / "credential").write_text("ghn_secret")
    with answering(status, body) as (url, seen):
        assert not is_refused(AgentSettings(hub_url=url), tmp_path / "credential")
        assert seen == ["Bearer ghn_secret"]


def test_nobody_there_is_no_proof(tmp_path: Path) -> None:
    (tmp_path / "credential").write_text("ghn_secret")
    settings = AgentSettings(hub_url=f"http://127.0.0.1:{free_port()}")
    assert not is_refused(settings, tmp_path / "credential")


def test_a_credential_is_shown_to_no_other_hub(tmp_path: Path) -> None:
    (tmp_path / "credential").write_text("ghn_secret")
    hub_file(tmp_path / "credential").write_text("https://gpus.example.org:443")
    with answering(401, b'{"error": {"code": "unauthorized", "message": ""}}') as (url, seen):
        with pytest.raises(Misconfigured, match=r"enrolled at https://gpus\.example\.org"):
            is_refused(AgentSettings(hub_url=url), tmp_path / "credential")
        assert seen == []
