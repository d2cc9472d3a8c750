"""Texts that every database can keep, and those that only some could."""

from __future__ import annotations

import pytest

from gpuherd.records.texts import is_keepable


@pytest.mark.parametrize("text", ["", "a", "Ä🐑", "\x01\x1b\u202e", "x" * 8])
def test_what_can_be_kept(text: str) -> None:
    assert is_keepable(text, 8)


@pytest.mark.parametrize("text", ["\0", "Ä\0", "\ud800", "x" * 9, "Ä" * 9])
def test_what_cannot(text: str) -> None:
    assert not is_keepable(text, 8)
