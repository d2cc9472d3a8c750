"""Text from nodes cannot hide, disguise or sprawl."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuherd.model.text import clean, clip


@pytest.mark.parametrize("text", ["", "plain", "python train.py --lr 1e-3", "Grüße ✓ 日本"])
def test_honest_text_is_left_alone(text: str) -> None:
    assert clean(text) == text


@pytest.mark.parametrize(
    "text", ["a\x1b[31m", "a\u202eb", "a\u200bb", "a\nb", "a\x00b", "a\u2028b", "\ud800", "a\u2066b"]
)
def test_hidden_characters_become_visible(text: str) -> None:
    assert "\ufffd" in clean(text)


@given(st.text(max_size=400), st.integers(min_value=1, max_value=200))
@pytest.mark.promise("text-is-inert")
def test_cleaned_text_is_short_visible_and_stays_clean(text: str, length: int) -> None:
    cleaned = clean(text, length)
    assert len(cleaned) <= length
    assert not any(unicodedata.category(character) in {"Cc", "Cf", "Cs", "Zl", "Zp"} for character in cleaned)
    assert clean(cleaned, length) == cleaned


def test_a_cut_is_visible() -> None:
    assert clip("abcdef", 4) == "abc…"
    assert clip("abcd", 4) == "abcd"
