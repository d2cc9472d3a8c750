"""Names to ids, credentials to nodes, failures to limits."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuherd.auth.attempts import FailedAttempts
from gpuherd.auth.enrolment import Credentials, Enrolment, node_id_for
from gpuherd.auth.secrets import JOIN_TOKEN_PREFIX, NODE_CREDENTIAL_PREFIX, digest, new_secret
from gpuherd.model.errors import Refused
from gpuherd.records.database import open_records
from gpuherd.records.nodes import EnrolledNodes, NodeRecords
from support.tally import Tally


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


@pytest.mark.attack
@pytest.mark.promise("no-lookalike-nodes")
def test_names_with_letters_that_look_like_others_are_refused(tally: Tally, tmp_path: Path) -> None:
    records = NodeRecords(open_records(tmp_path / "records.sqlite"))
    enrolment = Enrolment(records)
    lookalikes = ["n\u043ede0", "\u0441\u043e\u0441\u043e0", "gp\u03c5-01", "\u13aapu", "\ua4d6pu"]
    refused = []
    for name in lookalikes:
        with pytest.raises(Refused) as told:
            enrolment.enrol(token=enrolment.create_token(now=1.0), name=name, now=2.0)
        refused.append(told.value.code)
    tally.add("node enrols with a look-alike name", tries=len(lookalikes), held=refused.count("name_invalid"))
    assert set(refused) == {"name_invalid"}
    for name in ("node0", "Ångström µ", "ノード 7"):
        enrolment.enrol(token=enrolment.create_token(now=1.0), name=name, now=2.0)
    records.close()


@given(st.text())
@pytest.mark.promise("names-are-no-paths")
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


@pytest.fixture
def enrolment(tmp_path: Path) -> Iterator[Enrolment]:
    enrolment = Enrolment(NodeRecords(open_records(tmp_path / "records.sqlite")))
    yield enrolment
    enrolment.close()


def test_an_enrolment_asked_for_again_is_answered_alike_and_costs_nothing(enrolment: Enrolment) -> None:
    token = enrolment.create_token(now=0.0, lifetime_seconds=60.0, uses=2)
    own = new_secret(NODE_CREDENTIAL_PREFIX)
    first = enrolment.enrol(token=token, name="Gpu 01", now=1.0, credential=own)
    assert (first.node_id, first.credential) == ("gpu-01", own)
    assert enrolment.enrol(token=token, name="Gpu 01", now=2.0, credential=own) == first
    assert enrolment.enrol(token=token, name="Gpu 01", now=9999.0, credential=own) == first, "however late"
    assert enrolment.enrol(token=token, name="other", now=2.0).node_id == "other", "its second use is left"
    assert [node.id for node in enrolment.nodes()] == ["gpu-01", "other"]


def test_requests_that_come_at_the_same_time_get_one_answer(enrolment: Enrolment) -> None:
    token = enrolment.create_token(now=0.0)
    own = new_secret(NODE_CREDENTIAL_PREFIX)
    with ThreadPoolExecutor(4) as pool:
        answers = list(
            pool.map(lambda _: enrolment.enrol(token=token, name="a", now=1.0, credential=own), range(12))
        )
    assert len({(answer.node_id, answer.credential) for answer in answers}) == 1


def test_neither_a_stolen_token_nor_a_copied_credential_takes_over_a_node(enrolment: Enrolment) -> None:
    token = enrolment.create_token(now=0.0, uses=5)
    own = new_secret(NODE_CREDENTIAL_PREFIX)
    enrolment.enrol(token=token, name="a", now=1.0, credential=own)
    for thief in (None, new_secret(NODE_CREDENTIAL_PREFIX)):
        with pytest.raises(Refused) as caught:
            enrolment.enrol(token=token, name="a", now=1.0, credential=thief)
        assert caught.value.code == "name_taken"
    with pytest.raises(Refused) as caught:
        enrolment.enrol(token=token, name="copy of a", now=1.0, credential=own)
    assert caught.value.code == "credential_taken"
    enrolment.remove("a", now=2.0)
    spent = enrolment.create_token(now=0.0, uses=0)
    with pytest.raises(Refused) as caught:
        enrolment.enrol(token=spent, name="a", now=1.0, credential=own)
    assert caught.value.code == "token_invalid", "a removed node needs a token like any other"


@pytest.mark.parametrize("own", ["", "ghn_", "ghn_" + "a" * 42, "ghj_" + "a" * 43, "ghn_" + "ä" * 43])
def test_a_node_cannot_choose_a_credential_that_is_none(enrolment: Enrolment, own: str) -> None:
    token = enrolment.create_token(now=0.0)
    with pytest.raises(Refused) as caught:
        enrolment.enrol(token=token, name="a", now=1.0, credential=own)
    assert caught.value.code == "credential_invalid"
    assert enrolment.nodes() == ()
