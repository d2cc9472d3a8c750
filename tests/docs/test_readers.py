"""What readers look for is found: README is short, and common questions are answered within two clicks from it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.markdown import links_of

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
README_WORDS = 600
CLICKS = 2
ANSWERS = {
    "upgrade": ("docs/day2.md", "| upgrade it |"),
    "backup": ("docs/day2.md", "gpuherd backup FILE"),
    "reset a password": ("docs/day2.md", "| reset a password |"),
    "booking rules": ("docs/bookings.md", "## For admins: the rules"),
    "who sees my command line": ("docs/privacy.md", "| command line |"),
    "why a node does not show up": ("docs/troubleshooting.md", "## A node does not show up"),
    "prices": ("docs/howto.md", "| see what it cost |"),
    "notify me": ("docs/howto.md", "| be notified when a GPU becomes free |"),
    "wall display": ("docs/page.md", "## The wall"),
    "rename a node": ("docs/day2.md", "| rename a node |"),
    "colours and stripes": ("docs/page.md", "▨ striped"),
    "remove a node": ("docs/day2.md", "| remove a node |"),
    "the hub's log": ("docs/logs.md", "journalctl -u gpuherd-hub"),
    "Prometheus scrape": ("docs/faq.md", "Can Prometheus scrape the hub?"),
}


def _within_clicks() -> set[Path]:
    seen = {README}
    for _ in range(CLICKS):
        seen |= {
            target
            for page in seen
            if page.suffix == ".md"
            for link in links_of(page)
            if (target := (page.parent / link.partition("#")[0]).resolve()).is_file()
        }
    return seen


def test_the_readme_takes_at_most_three_minutes() -> None:
    assert len(README.read_text(encoding="utf-8").split()) <= README_WORDS


@pytest.mark.parametrize("question", ANSWERS)
def test_the_answer_is_two_clicks_from_the_readme(question: str) -> None:
    page, answer = ANSWERS[question]
    assert answer in (ROOT / page).read_text(encoding="utf-8")
    assert ROOT / page in _within_clicks()


def test_the_readme_has_one_picture_and_it_exists() -> None:
    (picture,) = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", README.read_text(encoding="utf-8"))
    assert (ROOT / picture).is_file()


LONG_FORMS = re.compile(r"gpuherd hub (?:account|token|node|backup|restore)(?![\w-])")


def test_commands_go_by_their_short_names() -> None:
    """``gpuherd user``, not ``gpuherd hub account``: the longer forms still work, and only the reference names them."""
    texts = [ROOT / "README.md", *(ROOT / "docs").glob("**/*.md"), *(ROOT / "web/src").rglob("*.ts")]
    texts += [file for file in (ROOT / "src").rglob("*.py") if "cli" not in file.parts]
    told = {
        str(file.relative_to(ROOT)): found
        for file in texts
        if not {"adr", "reference", "man"} & set(file.parts)
        if (found := LONG_FORMS.findall(file.read_text(encoding="utf-8")))
    }
    assert told == {}
