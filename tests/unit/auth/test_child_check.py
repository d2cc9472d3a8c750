"""Checks in processes of their own that do not answer as they should."""

from __future__ import annotations

import sys

import pytest
from msgspec import Struct

from gpuherd.auth.child_check import ChildChecks
from gpuherd.model.errors import Failed


class Answer(Struct):
    code: int


@pytest.mark.parametrize(
    "module",
    ["gpuherd.auth.no_such_module", "this"],  # ends with an error; prints what is no answer
)
def test_child_that_does_not_answer_is_a_failure(module: str) -> None:
    with pytest.raises(Failed, match=r"the oracle could not be checked: the check exited with code \d"):
        ChildChecks(module, what="the oracle", deadline_seconds=20).ask({"password": "word"}, Answer)


def test_no_process_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")

    with pytest.raises(Failed, match="the oracle failed: cannot start a process"):
        ChildChecks("this", what="the oracle", deadline_seconds=20).ask({}, Answer)
