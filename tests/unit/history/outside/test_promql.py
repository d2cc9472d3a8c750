"""Asking in PromQL when no answer comes."""

from __future__ import annotations

from typing import Any

import pytest

from gpuherd.history.outside.promql import PromqlReader
from gpuherd.history.outside.server import Answer, Server, Unanswered

GOOD = Answer(200, b'{"status": "success", "data": {"result": []}}', None, is_new_line=True)


class Failing(Server):
    """Fails once, for a reason, and answers then."""

    def __init__(self, reason: Exception) -> None:
        super().__init__("http://127.0.0.1:9")
        self._reason = reason
        self.asked = 0

    def ask(self, *_: Any, **__: Any) -> Answer:
        self.asked += 1
        if self.asked == 1:
            raise Unanswered("no answer") from self._reason
        return GOOD


def test_a_connection_that_was_closed_meanwhile_is_made_again() -> None:
    server = Failing(ConnectionResetError())
    assert PromqlReader(server).ask("/api/v1/query", query="vector(1)").result == []
    assert server.asked == 2


def test_a_store_that_let_the_time_pass_is_not_asked_again() -> None:
    server = Failing(TimeoutError())
    with pytest.raises(Unanswered):
        PromqlReader(server).ask("/api/v1/query", query="vector(1)")
    assert server.asked == 1
