"""Pseudonyms are stable, tell nothing, and cannot be forged or shared."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuherd.fleet import pseudonyms as module
from gpuherd.fleet.hygiene import clean_table
from gpuherd.fleet.pseudonym_words import ANIMALS, QUALITIES
from gpuherd.fleet.pseudonyms import MARK, LastingPseudonyms, Pseudonyms, without_mark
from gpuherd.model.processes import Process, ProcessTable

SECRET = b"0123456789abcdef"


def test_the_same_secret_gives_the_same_names() -> None:
    assert Pseudonyms(SECRET).of("ada") == Pseudonyms(SECRET).of("ada")
    assert Pseudonyms(SECRET).of("ada") != Pseudonyms(SECRET[::-1]).of("ada")
    assert re.fullmatch(r"~[a-z]+-[a-z]+-[0-9a-z]{4}", Pseudonyms(SECRET).of("ada"))


def test_capitals_make_no_difference() -> None:
    pseudonyms = Pseudonyms(SECRET)
    assert (
        pseudonyms.of("ada") == pseudonyms.of("ADA") == pseudonyms.of("\N{FULLWIDTH LATIN SMALL LETTER A}da")
    )


def test_nobody_shares_a_pseudonym(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "QUALITIES", QUALITIES[:1])
    monkeypatch.setattr(module, "ANIMALS", ANIMALS[:1])
    monkeypatch.setattr(module, "SHORTEST", 1)
    pseudonyms = Pseudonyms(SECRET)
    names = [f"user{number}" for number in range(500)]
    given_names = [pseudonyms.of(name) for name in names]
    assert len({*given_names}) == 500
    assert [pseudonyms.of(name) for name in names] == given_names


def test_what_lasts_is_made_of_the_name_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "QUALITIES", QUALITIES[:1])
    monkeypatch.setattr(module, "ANIMALS", ANIMALS[:1])
    one, other = LastingPseudonyms(SECRET), LastingPseudonyms(SECRET)
    names = [f"user{number}" for number in range(2000)]
    given_names = [one.of(name) for name in names]
    assert [other.of(name) for name in reversed(names)] == given_names[::-1]
    assert len({*given_names}) == len(names)
    assert re.fullmatch(r"~[a-z]+-[a-z]+-[0-9a-z]{12}", one.of("ADA"))
    assert one.of("ADA") == one.of("ada")
    assert one.stay_id("ada") == other.stay_id("ada") != LastingPseudonyms(SECRET[::-1]).stay_id("ada")
    assert len(one.stay_id("ada")) == 32


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_KEPT", 10)
    pseudonyms = Pseudonyms(SECRET)
    first = pseudonyms.of("ada")
    for number in range(100):
        pseudonyms.of(f"user{number}")
    assert len(pseudonyms._given) <= 10
    assert pseudonyms.of("ada") == first


@given(st.text(max_size=40))
def test_no_user_is_called_like_a_pseudonym(user: str) -> None:
    assert not without_mark(user).startswith(MARK)
    table = clean_table(ProcessTable(processes=(Process(pid=1, user=MARK + user),)), 0)
    shown = table.processes[0].user
    assert shown is not None
    assert not shown.startswith(MARK)


def test_a_short_secret_is_refused() -> None:
    with pytest.raises(ValueError, match="shorter"):
        Pseudonyms(b"short")
