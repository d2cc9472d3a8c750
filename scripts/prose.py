"""Check the words that people read: ``make check`` runs it, ``python scripts/prose.py --help`` lists its options.

Banned phrases in README, documentation, the changelog's unreleased part, messages and the page are errors. Files that
still have some are listed with a number in ``prose_baseline.tsv``, which may only shrink. Doubtful words and long
sentences are counted as warnings.
"""

from __future__ import annotations

import argparse
import ast
import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BASELINE = Path(__file__).with_name("prose_baseline.tsv")
LONG_SENTENCE_WORDS = 35
BANNED = re.compile(
    r"""\b(?:
    (?:is|are|was|were|be|been|being)\s+told
    | anew | lest
    | so\s+many\s+(?:are|is|of\s+a\s+kind|wanted) | in\s+so\s+many\s+words
    | of\s+whom(?:ever)? | whoever\s+(?:was|is|may|has|can|reads|knows|opens) | whom\s+to\s+ask
    | as\s+(?:it\s+comes|they\s+come)
    | (?:can|may|could|might|cannot|to)\s+be\s+had
    | (?:not|never)\s+heard\s+of | no\s+idea\s+when
    | how\s+to\s+mend | such\s+ones | of\s+one's\s+own
    | is\s+no\s+\w+\s+that\s+can\s+be
    )\b""",
    re.IGNORECASE | re.VERBOSE,
)
DOUBTFUL = re.compile(
    r"\b(?:told|tells?|kept|whoever|whomever|whom|mend(?:s|ed)?|stands?|shall|vouch(?:es)?|oneself|one's)\b",
    re.IGNORECASE,
)
_FENCE = re.compile(r"^[ \t]*(```+|~~~+).*?^[ \t]*\1[ \t]*$", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->|/\*.*?\*/|(?<![:\w\"'`])//[^\n]*", re.DOTALL)
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")


def main() -> None:
    """Check everything, or print a random sample of sentences."""
    parser = argparse.ArgumentParser(description="Check the words that people read.")
    parser.add_argument("--list", action="store_true", help="print every banned phrase, also known ones")
    parser.add_argument("--warn", action="store_true", help="print every warning")
    parser.add_argument("--shrink", action="store_true", help="lower the baseline to what is left")
    parser.add_argument("--sample", type=int, metavar="N", help="print N random sentences of README and docs")
    parser.add_argument("--seed", type=int, default=1, help="seed of the sample (default: 1)")
    options = parser.parse_args()
    if options.sample:
        _write(f"{place}\t{sentence}" for place, sentence in sample(ROOT, options.sample, options.seed))
        return
    texts = dict(readable_texts(ROOT))
    found = {name: hits for name, text in texts.items() if (hits := banned_in(text))}
    known = read_baseline(BASELINE)
    if options.shrink:
        known = {name: min(count, len(found.get(name, ()))) for name, count in known.items()}
        lines = (f"{name}\t{count}\n" for name, count in sorted(known.items()) if count)
        BASELINE.write_text("".join(lines), encoding="utf-8")
    _warn(texts, is_verbose=options.warn)
    grown = {name: hits for name, hits in found.items() if len(hits) > known.get(name, 0)}
    for name, hits in (found if options.list else grown).items():
        _write(f"{name}:{line}: “{phrase}”" for line, phrase in hits)
    if grown:
        sys.exit("prose: rewrite these sentences: short, direct, active (docs/glossary.md has the words)")


def readable_texts(root: Path) -> Iterator[tuple[str, str]]:
    """Give every text that people read, by the name of its file; lines keep their numbers."""
    for page in [root / "README.md", root / "CONTRIBUTING.md", *sorted(root.glob("docs/**/*.md"))]:
        yield str(page.relative_to(root)), without_code(page.read_text(encoding="utf-8"))
    changelog = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    yield "CHANGELOG.md", re.split(r"^## \[\d", changelog, maxsplit=1, flags=re.MULTILINE)[0]
    for source in sorted(root.glob("src/gpuherd/**/*.py")):
        yield str(source.relative_to(root)), messages_of(source.read_text(encoding="utf-8"))
    for source in sorted([*root.glob("web/src/**/*.svelte"), *root.glob("web/src/**/*.ts")]):
        if not source.name.endswith((".test.ts", ".d.ts")):
            text = source.read_text(encoding="utf-8")
            yield str(source.relative_to(root)), _COMMENT.sub(_blank, text)


def without_code(page: str) -> str:
    """Return the prose of a page."""
    return re.sub(r"`[^`\n]*`", "`…`", _COMMENT.sub(_blank, _FENCE.sub(_blank, page)))


def messages_of(source: str) -> str:
    """Return the strings of a module that are not docstrings, each on its line."""
    tree = ast.parse(source)
    described = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    described |= {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    lines = [""] * (source.count("\n") + 1)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in described:
            lines[node.lineno - 1] += " " + " ".join(node.value.split())
    return "\n".join(lines)


def banned_in(text: str) -> list[tuple[int, str]]:
    """Return the lines and wordings of banned phrases."""
    return [
        (text.count("\n", 0, hit.start()) + 1, " ".join(hit[0].split()))
        for hit in BANNED.finditer(text)
        if "\n\n" not in hit[0]
    ]


def sentences_of(page: str) -> list[str]:
    """Return the sentences of a page's paragraphs, lists and table cells."""
    text = _LINK.sub(r"\1", _FENCE.sub("\n", page))
    text = _COMMENT.sub("", text)
    blocks = re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.)\s)|^#.*$|\|", text, flags=re.MULTILINE)
    parts = (re.split(r"(?<=[.!?])\s+(?=[A-Z`*\"“])", " ".join(block.split())) for block in blocks)
    return [part.strip(" -*") for each in parts for part in each if len(part.split()) >= 5]


def sample(root: Path, count: int, seed: int) -> list[tuple[str, str]]:
    """Draw sentences of README and the pages that are not generated."""
    pages = [root / "README.md", *sorted(root.glob("docs/**/*.md"))]
    every = [
        (str(page.relative_to(root)), sentence)
        for page in pages
        if page.parent.name != "reference"
        for sentence in sentences_of(page.read_text(encoding="utf-8"))
    ]
    return random.Random(seed).sample(every, min(count, len(every)))  # noqa: S311 - a sample, not a secret


def read_baseline(file: Path) -> dict[str, int]:
    """Return how many banned phrases each file may still have."""
    if not file.exists():
        return {}
    rows = (line.split("\t") for line in file.read_text(encoding="utf-8").splitlines())
    return {name: int(count) for name, count in rows}


def _warn(texts: dict[str, str], *, is_verbose: bool) -> None:
    pages = {name: text for name, text in texts.items() if name.endswith(".md")}
    words = {name: DOUBTFUL.findall(text) for name, text in pages.items()}
    long = {
        name: [each for each in sentences_of(text) if len(each.split()) > LONG_SENTENCE_WORDS]
        for name, text in pages.items()
    }
    if is_verbose:
        _write(f"{name}: {word}" for name, found in words.items() for word in found)
        _write(f"{name}: {sentence}" for name, found in long.items() for sentence in found)
    doubtful, too_long = sum(map(len, words.values())), sum(map(len, long.values()))
    _write(
        [f"prose: warnings: {doubtful} doubtful words, {too_long} sentences over {LONG_SENTENCE_WORDS} words"]
    )


def _blank(hit: re.Match[str]) -> str:
    return "\n" * hit[0].count("\n")


def _write(lines: Iterator[str] | list[str]) -> None:
    for line in lines:
        sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    main()
