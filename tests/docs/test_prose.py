"""The prose check finds what it should, and no text that people read has a banned phrase."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripts.prose import (
    banned_in,
    messages_of,
    page_strings_of,
    readable_texts,
    sample,
    sentences,
    sentences_of,
    strings_of,
    without_code,
)

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    "text",
    [
        "The user is told.",
        "They are\ntold so.",
        "It is written anew.",
        "So many are wanted.",
        "people of whom none is here",
        "Whoever was changed stays out.",
        "as it comes",
        "lest it fail",
        "Wait until GPUs can be had.",
        "the host is in no list",
        '"x" is no port; correct it',
    ],
)
def test_a_banned_phrase_is_found(text: str) -> None:
    assert len(banned_in(text)) == 1


def test_plain_sentences_pass() -> None:
    assert banned_in("The hub tells agents to wait. A newer version is available.") == []


def test_a_phrase_is_found_at_its_line() -> None:
    page = "One.\n\n```\nis told\n```\n\n<!-- is told -->\nHere `is told` is code, but this\nis told.\n"
    assert banned_in(without_code(page)) == [(9, "is told")]


def test_strings_are_messages_and_docstrings_are_not() -> None:
    source = '"""It is told."""\n\n\ndef f():\n    """It is told."""\n    return "done", f"it is told {f}"\n'
    assert banned_in(messages_of(source)) == [(6, "is told")]


def test_sentences_are_told_apart() -> None:
    paragraph = "One sentence has five words. Here is another [with a link](x.md)."
    page = f"# A heading\n\n{paragraph}\n\n| a | cell of five words here |\n"
    assert sentences_of(page) == [
        "One sentence has five words.",
        "Here is another with a link.",
        "cell of five words here",
    ]


def test_a_sample_is_the_same_for_the_same_seed() -> None:
    assert sample(ROOT, 20, 1) == sample(ROOT, 20, 1) != sample(ROOT, 20, 2)


def test_a_sample_covers_documentation_help_messages_and_page() -> None:
    drawn = dict(sentences(ROOT))
    assert {"README.md", "CHANGELOG.md", "docs/reference/cli.md", "docs/reference/api.md"} <= drawn.keys()
    assert {"src/gpuherd/agent/enrol.py", "web/src/lib/strings.ts"} <= drawn.keys()


def test_parts_of_a_message_are_one_sentence() -> None:
    source = 'def f(x):\n    """No message."""\n    raise E(f"cannot read {x}: " "check the path")\n'
    assert list(strings_of(source)) == ["cannot read {…}: check the path"]


def test_texts_of_the_page_are_found() -> None:
    page = (
        '<script>\nimport x from "y";\nconst word = "Log in first";</script>\n<p class="a">No GPU here</p>\n'
    )
    assert [text for text in page_strings_of(page) if " " in text] == ["Log in first", "No GPU here"]


def test_nothing_that_people_read_has_a_banned_phrase() -> None:
    texts = dict(readable_texts(ROOT))
    assert {"README.md", "CHANGELOG.md", "docs/reference/cli.md", "src/gpuherd/cli/free.py"} <= texts.keys()
    assert {name: hits for name, text in texts.items() if (hits := banned_in(text))} == {}
