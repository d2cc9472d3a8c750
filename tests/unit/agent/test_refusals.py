"""What an agent says when no WebSocket is opened: who says no, and what helps."""

from __future__ import annotations

import pytest

from gpuherd.agent.refusals import OTHER_PROTOCOL, HandshakeRefused, hub_code, refusal
from gpuherd.agent.talk import NeedsPerson

URL = "https://gpus.example.org"
PASS_ON = "a proxy in front of the hub does not pass it on"
LOGIN = "a proxy in front of the hub at https://gpus.example.org requires a login"


@pytest.mark.parametrize(
    ("status", "code", "words"),
    [
        (426, "upgrade_required", PASS_ON),  # the hub was asked without Upgrade, though the agent sent it
        (426, None, PASS_ON),
        (200, None, PASS_ON),
        (400, None, PASS_ON),
        (501, None, PASS_ON),
        (302, None, LOGIN),
        (401, None, LOGIN),
        (403, None, LOGIN),
        (401, "unauthorized", "does not know this node's credential"),
        (403, "forbidden", "does not know this node's credential"),
        (400, OTHER_PROTOCOL, "does not speak gpuherd.v1; upgrade the hub or this agent"),
        (101, OTHER_PROTOCOL, "does not speak gpuherd.v1; upgrade the hub or this agent"),
        (404, None, "there is no gpuherd hub at"),
        (404, "not_found", "there is no gpuherd hub at"),
    ],
)
def test_a_person_is_told_whose_no_it_is(status: int, code: str | None, words: str) -> None:
    told = refusal(HandshakeRefused(status, code), URL)
    assert isinstance(told, NeedsPerson)
    assert words in str(told)
    if words in (PASS_ON, LOGIN):
        assert "docs/deploy/proxies.md" in str(told)
        assert f"(HTTP {status})" in str(told)


@pytest.mark.parametrize(
    ("status", "code"), [(502, None), (503, None), (503, "unavailable"), (504, None), (429, "too_many")]
)
def test_what_passes_by_itself_needs_nobody(status: int, code: str | None) -> None:
    told = refusal(HandshakeRefused(status, code), URL)
    assert not isinstance(told, NeedsPerson)
    assert f"{URL} does not accept connections now (HTTP {status})" in str(told)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b'{"error":{"code":"unauthorized","message":"no"}}', "unauthorized"),
        (b'{"error":{"message":"no"}}', None),
        (b'{"error":"no"}', None),
        (b"<html>", None),
        (b"[" * 100_000, None),
        (b"\xff", None),
        (b"", None),
        (None, None),
    ],
)
def test_a_hubs_answer_is_known_by_its_shape(body: bytes | None, code: str | None) -> None:
    assert hub_code(body) == code
