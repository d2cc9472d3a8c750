"""The line to a hub, with servers that are none."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gpuherd.client.errors import HubRefused, HubSilent
from gpuherd.client.hub import HubClient
from gpuherd.client.line import HubLine, HubUrl, plain_json
from gpuherd.client.login_file import Login, LoginFile, read_token
from gpuherd.model.errors import Misconfigured
from support.running import PATIENCE_SECONDS


@contextmanager
def answering(answer: bytes) -> Iterator[HubUrl]:
    """A server that gives the same answer to whatever comes, once."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            peer, _ = server.accept()
            with peer:
                peer.recv(65_536)
                peer.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield HubUrl.parse(f"http://127.0.0.1:{server.getsockname()[1]}")
        thread.join(PATIENCE_SECONDS)


def http(status: str, body: bytes = b"", *headers: str) -> bytes:
    head = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(head).encode() + body


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (
            http("302 Found", b"", "Location: https://evil.example/\x1b[31m"),
            "redirects to https://evil.example/\ufffd[31m",
        ),
        (http("503 Service Unavailable", b"<html>"), "is down or busy"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "does not speak HTTP"),
        (b"", "closed the connection"),
        (http("200 OK", b"<html>"), "not like a gpuherd hub"),
        (http("200 OK", b"[" * 50_000), "not like a gpuherd hub"),
    ],
)
def test_answers_of_others(answer: bytes, told: str) -> None:
    with answering(answer) as url, pytest.raises(HubSilent) as caught:
        HubClient(HubLine(url, deadline_seconds=5)).session()
    assert told in str(caught.value)


def test_an_address_without_tls_is_told() -> None:
    with answering(http("400 Bad Request")) as url, pytest.raises(HubSilent) as caught:
        HubClient(HubLine(HubUrl.parse(str(url).replace("http", "https")), deadline_seconds=5)).session()
    assert "it does not speak TLS; is it an http address?" in str(caught.value)


def test_a_hub_that_never_answers() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = HubUrl.parse(f"http://127.0.0.1:{server.getsockname()[1]}")
        with pytest.raises(HubSilent, match=r"did not respond within 0\.2 s"):
            HubClient(HubLine(url, deadline_seconds=0.2)).session()
        line = HubLine(url, token="t", deadline_seconds=0.2)
        assert line.with_deadline(0.1).has_token
        with pytest.raises(HubSilent, match=r"did not respond within 0\.1 s"):
            HubClient(line.with_deadline(0.1)).session()
        with pytest.raises(HubSilent, match=r"did not respond within 0\.2 s"):
            HubClient(line).session()


def test_what_a_hub_says_against_it() -> None:
    body = b'{"error": {"code": "conflict", "message": "taken", "next_free": 7, "unknown": 1}}'
    with answering(http("409 Conflict", body)) as url, pytest.raises(HubRefused) as caught:
        HubClient(HubLine(url)).book({})
    assert (caught.value.status, caught.value.detail.code, caught.value.detail.next_free) == (
        409,
        "conflict",
        7,
    )
    with (
        answering(http("404 Not Found", b"nothing")) as url,
        pytest.raises(HubRefused, match="not like a gpuherd hub"),
    ):
        HubClient(HubLine(url)).session()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("gpus.lab", "https://gpus.lab"),
        ("https://gpus.lab/herd/", "https://gpus.lab/herd"),
        ("http://[::1]:8470/", "http://[::1]:8470"),
        ("https://gpus.lab:443", "https://gpus.lab"),
    ],
)
def test_addresses(text: str, expected: str) -> None:
    assert str(HubUrl.parse(text)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "ftp://gpus.lab",
        "https://",
        "https://a:b@gpus.lab",
        "https://gpus.lab/?x",
        "https://gp us",
        "https://x:99999",
    ],
)
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(Misconfigured) as caught:
        HubUrl.parse(text)
    assert "a:b" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://localhost:1", False),
        ("http://127.0.0.9", False),
        ("https://x", False),
        ("http://x", True),
        ("http://10.0.0.1", True),
    ],
)
def test_who_could_read_along(url: str, expected: bool) -> None:
    assert HubUrl.parse(url).is_exposed is expected


def test_json_for_programs_is_harmless_on_a_terminal() -> None:
    assert plain_json('{"a": "\u202e\\u001b[31mé"}'.encode()) == '{\n  "a": "\\u202e\\u001b[31m\\u00e9"\n}'


def test_a_login_is_kept_from_others(tmp_path: Path) -> None:
    kept = LoginFile(tmp_path / "new" / "token")
    assert kept.load() is None
    login = Login(hub="https://gpus.lab", token="ghu_x", name="ann")
    kept.save(login)
    kept.save(login)
    assert kept.load() == login
    assert [file.name for file in kept.file.parent.iterdir()] == ["token"]
    assert kept.file.stat().st_mode & 0o777 == 0o600
    kept.file.chmod(0o640)
    with pytest.raises(Misconfigured, match="chmod 600"):
        kept.load()
    kept.file.chmod(0o600)
    for damaged in (b"{", b'{"hub": "\xf2"}'):
        kept.file.write_bytes(damaged)
        with pytest.raises(Misconfigured, match="is damaged"):
            kept.load()
    assert kept.forget()
    assert not kept.forget()


@pytest.mark.parametrize("content", ["", "hello", "ghu_a ghu_b", "ghu_\xff"])
def test_files_without_a_token(tmp_path: Path, content: str) -> None:
    file = tmp_path / "token"
    file.write_text(content, encoding="latin-1")
    file.chmod(0o600)
    with pytest.raises(Misconfigured, match="contains no API token"):
        read_token(file)
