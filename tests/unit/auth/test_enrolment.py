"""Names to ids, credentials to nodes, failures to limits."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuherd.auth.attempts import FailedAttempts
from gpuherd.auth.enrolment import Credentials, node_id_for
from gpuherd.auth.secrets import JOIN_TOKEN_PREFIX, NODE_CREDENTIAL_PREFIX, digest, new_secret
from gpuherd.model.errors import Refused
from gpuherd.records.nodes import EnrolledNodes


@pytest.mark.parametrize(
    ("name", "node_id"),
    [
        ("gpu-01.example.org", "gpu-01.example.org"),
        ("The Big One", "the-big-one"),
        ("Ångström µ", "angstrom"),
        ("../../etc/passwd", "etc-passwd"),
        ("a" * 200, "a" * 63),
        ("x\u202ey\x1b[31m", "xy-31m"),
    ],
)
def test_ids_are_plain(name: str, node_id: str) -> None:
    assert node_id_for(name) == node_id


@given(st.text())
def test_any_name_gives_a_plain_id_or_a_clean_refusal(name: str) -> None:
    try:
        node_id = node_id_for(name)
    except Refused as refused:
        assert refused.code == "name_invalid"  # noqa: PT017 - either outcome is good
    else:
        assert re.fullmatch(r"[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?", node_id)


def test_secrets_are_long_and_never_the_same() -> None:
    secrets = {new_secret(NODE_CREDENTIAL_PREFIX) for _ in range(100)}
    assert len(secrets) == 100
    assert all(len(secret) == len("ghn_") + 43 for secret in secrets)


def test_only_the_very_credential_opens() -> None:
    secret = new_secret(NODE_CREDENTIAL_PREFIX)
    known = Credentials(EnrolledNodes(revision=1, nodes=(), credentials={digest(secret): "a"}))
    assert known.node_of(secret) == "a"
    wrong = [
        "",
        secret[:-1],
        secret + "x",
        secret.upper(),
        digest(secret),
        JOIN_TOKEN_PREFIX + secret[4:],
        "ghn_" * 999,
    ]
    assert [known.node_of(other) for other in wrong] == [None] * len(wrong)


def test_a_sender_may_fail_only_so_often_and_only_for_a_while() -> None:
    attempts = FailedAttempts(limit=3, window_seconds=60)
    for second in range(3):
        attempts.check("a", second)
        attempts.failed("a", second)
    with pytest.raises(Refused, match="too many failed attempts"):
        attempts.check("a", 3)
    attempts.check("b", 3)
    attempts.check("a", 61)


def test_failures_of_many_senders_take_bounded_memory() -> None:
    attempts = FailedAttempts(limit=1, max_senders=10)
    for number in range(1000):
        attempts.failed(str(number), 0)
    assert len(attempts._counts) == 10
    assert attempts.total == 1000
