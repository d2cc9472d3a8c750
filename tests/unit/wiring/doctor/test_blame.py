"""Which step a failure belongs to."""

from __future__ import annotations

from typing import get_args

import pytest

from gpuherd.model.targets import NodeWay
from gpuherd.sources.ssh.places import Phase, Progress
from gpuherd.wiring.doctor.blame import STAGES, broken_stage, in_few_words, with_remedy


@pytest.mark.parametrize(
    ("way", "code", "message", "reached", "stage"),
    [
        ("ssh", "host_key_unknown", "gpu01: the host key of gpu01 is not known", [], "key"),
        ("ssh", "host_key_changed", "gpu01: … has CHANGED from …", [], "key"),
        ("ssh", "server_busy", "gpu01: closed the connection before its greeting", [], "key"),
        ("ssh", "unreachable", "gpu01: SSH failed while exchanging keys (…)", [], "key"),
        ("ssh", "login_refused", "gpu01: login as root@gpu01 refused", [], "login"),
        ("ssh", "link_lost", "gpu01: the server closed the connection while logging in", [], "login"),
        (
            "ssh",
            "link_lost",
            "gpu01: the server closed the connection while opening a session",
            ["login"],
            "command",
        ),
        (
            "ssh",
            "session_refused",
            "gpu01: the login works but the server opens no session",
            ["login"],
            "command",
        ),
        ("ssh", "command_refused", "gpu01: what it ran exited with status 1", ["login"], "command"),
        ("ssh", "garbled", "gpu01: more than 64 KiB before the first line", ["login"], "parse"),
        ("ssh", "too_large", "gpu01: a round of more than 16 MiB", ["login"], "command"),
        (
            "ssh",
            "timeout",
            "gpu01: the login works but a first round has not arrived for 29 s",
            ["login"],
            "command",
        ),
        ("ssh", "garbled", "gpu01: the node sent invalid data", ["login", "command"], "parse"),
        ("pull", "tls_failed", "gpu01 (gpu01:8472): its certificate has expired", [], "key"),
        ("pull", "hub_refused", "gpu01 (gpu01:8472): the agent does not trust this hub", [], "key"),
        ("pull", "garbled", "gpu01 (gpu01:8472): the program there is not a gpuherd agent", [], "key"),
        ("pull", "link_lost", "gpu01 (gpu01:8472): the agent has stopped", ["key"], "answer"),
        (
            "node_info",
            "wrong_password",
            "gpu01 answers 404, as node_info.py does to a wrong password",
            [],
            "key",
        ),
        (
            "node_info",
            "garbled",
            "gpu01 responds with 500; the log of its node_info.py says why",
            [],
            "answer",
        ),
        ("node_info", "garbled", "gpu01 does not return JSON", [], "parse"),
        ("node_info", "no_data", "gpu01 responds, but its data is old", [], "answer"),
        ("xmlrpc", "garbled", "gpu01 responds with 404; is it the old monitor's RPC server?", [], "answer"),
        ("xmlrpc", "garbled", "gpu_stats() of gpu01 returns no JSON", [], "parse"),
        ("xmlrpc", "timeout", "gpu01 port 8043 did not respond within 2 s", [], "answer"),
        ("xmlrpc", "of_a_newer_version", "something else", [], "answer"),
    ],
)
def test_the_broken_stage(way: NodeWay, code: str, message: str, reached: list[str], stage: str) -> None:
    assert broken_stage(way, code, message, reached) == stage


@pytest.mark.parametrize("phase", get_args(Phase)[3:])
def test_every_phase_of_a_login_has_its_stage(phase: Phase) -> None:
    progress = Progress("gpu01")
    progress.phase = phase
    late = progress.too_late(20)
    expected = {
        "waiting for the server's greeting": "key",
        "exchanging keys": "key",
        "logging in": "login",
        "opening a session": "command",
        "waiting for the first line of the script": "command",
    }
    assert broken_stage("ssh", late.code, str(late), []) == expected[phase]


def test_a_stage_that_was_reached_is_never_blamed() -> None:
    for way, stages in STAGES.items():
        for position, reached in enumerate(stages[:-1]):
            for code in ("host_key_unknown", "login_refused", "wrong_password", "garbled", "timeout"):
                blamed = broken_stage(way, code, "whatever", [reached])
                assert stages.index(blamed) > position


def test_codes_in_few_words() -> None:
    assert in_few_words("host_key_unknown") == "host key unknown"
    assert in_few_words("made_up_later") == "made up later"


def test_a_sentence_without_a_remedy_gets_one() -> None:
    lost = "gpu01: the server closed the connection while logging in"
    assert with_remedy("ssh", "link_lost", lost) == f"{lost}; check sshd's log there (`journalctl -u ssh`)"
    assert (
        with_remedy("xmlrpc", "garbled", "gpu01 answers 404; is it there?")
        == "gpu01 answers 404; is it there?"
    )
    assert with_remedy("ssh", "login_refused", "no") == "no"
