"""The page about the doctor knows every verdict."""

from __future__ import annotations

from pathlib import Path

from gpuherd.wiring.doctor.blame import _WORDS

PAGE = Path(__file__).parents[4] / "docs/doctor.md"


def test_every_verdict_is_explained() -> None:
    facts = [
        row.split(" | ")[1] for row in PAGE.read_text(encoding="utf-8").splitlines() if row.count(" | ") == 2
    ]
    assert [words for words in _WORDS.values() if words not in facts] == []
