"""Enrolment against a real HTTP server: what is sent, what is kept, what is said when it fails."""

from __future__ import annotations

import json
import logging
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from gpuherd.agent.address import HubAddress
from gpuherd.agent.enrol import Credentials
from gpuherd.model.errors import Failed, Misconfigured

TOKEN = "ghj_join-token-of-this-test"
CREDENTIAL = "ghn_credential-of-this-test"


class EnrolHub:
    """Answers enrolments as told and keeps the requests."""

    def __init__(self) -> None:
        self.status = 201
        self.answer: Any = {"node_id": "gpu01", "credential": CREDENTIAL, "novelty": 1}
        self.requests: list[tuple[str, Any]] = []
        hub = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                hub.requests.append((self.path, json.loads(body)))
                answer = hub.answer if isinstance(hub.answer, bytes) else json.dumps(hub.answer).encode()
                self.send_response(hub.status)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: object) -> None:
                pass

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self.address = HubAddress.parse(f"http://127.0.0.1:{self._server.server_port}/base")
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def hub() -> Iterator[EnrolHub]:
    hub = EnrolHub()
    yield hub
    hub.stop()


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    return file


def credentials(
    hub: EnrolHub, tmp_path: Path, token_file: Path | None, name: str | None = None
) -> Credentials:
    return Credentials(
        hub.address,
        credential_file=tmp_path / "state" / "credential",
        join_token_file=None if token_file is None else str(token_file),
        node_name=name,
    )


def test_a_token_buys_a_credential_that_is_kept(
    hub: EnrolHub, tmp_path: Path, token_file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        assert credentials(hub, tmp_path, token_file, name="rack 7").get() == CREDENTIAL
    ((path, request),) = hub.requests
    assert path == "/base/api/v1/enroll"
    assert request.keys() == {"token", "hostname", "name", "credential"}
    assert (request["token"], request["name"]) == (TOKEN, "rack 7")
    file = tmp_path / "state" / "credential"
    assert file.read_text() == CREDENTIAL + "\n"
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700
    assert {path.name for path in file.parent.iterdir()} == {"credential", "credential.hub"}
    assert "gpu01" in caplog.text
    assert request["credential"] not in caplog.text
    assert TOKEN not in caplog.text
    assert CREDENTIAL not in caplog.text
    token_file.unlink()
    assert credentials(hub, tmp_path, None).get() == CREDENTIAL, "no second enrolment"
    assert len(hub.requests) == 1


def test_without_credential_or_token_the_start_says_how_to_enrol(hub: EnrolHub, tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match="gpuherd token create"):
        credentials(hub, tmp_path, None).check()


@pytest.mark.parametrize("content", [b"", b"two\nlines", b"caf\xc3\xa9", b"\xff\xfe", b"x" * 5000, b"a b"])
def test_a_file_that_holds_no_token_is_named_not_shown(hub: EnrolHub, tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "token"
    file.write_bytes(content)
    with pytest.raises(Misconfigured, match="does not contain a join token") as caught:
        credentials(hub, tmp_path, file).check()
    assert "lines" not in str(caught.value)
    assert hub.requests == []


def test_a_missing_token_file_is_named(hub: EnrolHub, tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match=r"nowhere: No such file"):
        credentials(hub, tmp_path, tmp_path / "nowhere").check()


@pytest.mark.parametrize(
    ("status", "kind", "text"),
    [
        (400, Misconfigured, "used up"),
        (401, Misconfigured, "gpuherd token create"),
        (403, Misconfigured, "used up"),
        (404, Misconfigured, r"agent\.hub_url"),
        (308, Misconfigured, r"agent\.hub_url"),
        (429, Failed, "used up"),
        (503, Failed, "used up"),
    ],
)
def test_refusals_say_whether_to_try_again(
    hub: EnrolHub, tmp_path: Path, token_file: Path, status: int, kind: type[Exception], text: str
) -> None:
    hub.status = status
    hub.answer = {"error": {"code": "token_invalid", "message": "the token is\x1b[31m used up"}}
    with pytest.raises(kind, match=text) as caught:
        credentials(hub, tmp_path, token_file).get()
    assert "\x1b" not in str(caught.value)
    assert TOKEN not in str(caught.value)


@pytest.mark.parametrize(
    "answer", [b"<html>", b"", {"node_id": "n"}, {"node_id": "n", "credential": "a\nb"}, [], b"x" * 100_000]
)
def test_a_senseless_answer_is_a_failure(
    hub: EnrolHub, tmp_path: Path, token_file: Path, answer: Any
) -> None:
    hub.answer = answer
    with pytest.raises(Failed, match="unexpected response to the enrolment"):
        credentials(hub, tmp_path, token_file).get()
    assert not (tmp_path / "state" / "credential").exists()


def test_a_hub_that_is_not_there_is_a_failure_to_try_again(
    hub: EnrolHub, tmp_path: Path, token_file: Path
) -> None:
    late = credentials(hub, tmp_path, token_file)
    hub.status = 503
    with pytest.raises(Failed):
        late.get()
    hub.status = 200
    assert late.get() == CREDENTIAL
    first, second = (request["credential"] for _, request in hub.requests)
    assert first == second, "asked again with the same, so that the hub can tell"


def test_an_unfinished_enrolment_goes_on_after_a_restart_but_not_at_another_hub(
    hub: EnrolHub, tmp_path: Path, token_file: Path
) -> None:
    hub.status = 503
    for _ in range(2):
        with pytest.raises(Failed):
            credentials(hub, tmp_path, token_file).get()
    (file,) = (tmp_path / "state").iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    other = EnrolHub()
    try:
        assert credentials(other, tmp_path, token_file).get() == CREDENTIAL
        ((_, elsewhere),) = other.requests
    finally:
        other.stop()
    first, second = (request["credential"] for _, request in hub.requests)
    assert first == second
    assert elsewhere["credential"] != first, "another hub could speak as this node with it"
    assert re.fullmatch(r"ghn_[A-Za-z0-9_-]{43}", first)


def test_a_credential_is_shown_to_the_hub_that_gave_it_and_to_no_other(
    hub: EnrolHub, tmp_path: Path, token_file: Path
) -> None:
    credentials(hub, tmp_path, token_file).get()
    other = EnrolHub()
    try:
        for use in (Credentials.check, Credentials.get):
            with pytest.raises(Misconfigured, match=f"this node is enrolled at {hub.address.url}"):
                use(credentials(other, tmp_path, token_file))
        (
            tmp_path / "state" / "credential.hub"
        ).unlink()  # as the message says: it is the same under another name
        assert credentials(other, tmp_path, token_file).get() == CREDENTIAL
    finally:
        other.stop()


@pytest.mark.parametrize("content", [b"", b"\xff", b"ghn_short http://x\n", b"a b c"])
def test_an_unfinished_enrolment_that_cannot_be_read_is_begun_anew(
    hub: EnrolHub, tmp_path: Path, token_file: Path, content: bytes
) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / ".credential.new").write_bytes(content)
    assert credentials(hub, tmp_path, token_file).get() == CREDENTIAL
    ((_, request),) = hub.requests
    assert re.fullmatch(r"ghn_[A-Za-z0-9_-]{43}", request["credential"])


def test_a_credential_that_cannot_be_kept_names_the_folder(
    hub: EnrolHub, tmp_path: Path, token_file: Path
) -> None:
    (tmp_path / "state").write_text("in the way")
    with pytest.raises(Misconfigured, match=r"agent\.state_dir"):
        credentials(hub, tmp_path, token_file).get()
    assert hub.requests == [], "the token is not spent on a credential that would be lost"
