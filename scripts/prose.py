"""Check the words that people read: ``make check`` runs it, ``python scripts/prose.py --help`` lists its options.

Banned phrases in README, documentation, the changelog's unreleased part, messages and the page are errors. Doubtful
words and long sentences are counted as warnings. ``--sample`` draws sentences for a person to rate.
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
    | (?<!there\s)is\s+no\s+(?:address|entry|host|index|name|number|port|scope|text|user|variable)
    | in\s+no\s+(?:list|network) | (?:if\s+it|it)\s+stays\s+so | proxy\s+before\s+(?:it|the\s+hub)
    | is\s+asked\s+(?:again|every|less\s+often) | made\s+up\s+by | sends\s+us\s+elsewhere | what\s+cannot\s+be
    )\b""",
    re.IGNORECASE | re.VERBOSE,
)
DOUBTFUL = re.compile(
    r"\b(?:told|tells?|kept|whoever|whomever|whom|mend(?:s|ed)?|stands?|shall|vouch(?:es)?|oneself|one's)\b",
    re.IGNORECASE,
)
_FENCE = re.compile(r"^[ \t]*(```+|~~~+).*?^[ \t]*\1[ \t]*$", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->|/\*.*?\*/|(?<![:\w\"'`])//[^\n]*", re.DOTALL)
_READS_LIKE_A_SENTENCE = re.compile(
    r"(?!\s*(?:SELECT|INSERT|UPDATE|DELETE|CREATE|WITH|ALTER|COPY)\b)[^;]*[a-z]{2,} [a-z]{2,}", re.DOTALL
)
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")


def main() -> None:
    """Check everything, or print a random sample of sentences."""
    parser = argparse.ArgumentParser(description="Check the words that people read.")
    parser.add_argument("--warn", action="store_true", help="print every warning")
    parser.add_argument(
        "--sample", type=int, metavar="N", help="print N random sentences of docs, help, messages and page"
    )
    parser.add_argument("--seed", type=int, default=1, help="seed of the sample (default: 1)")
    options = parser.parse_args()
    if options.sample:
        _write(f"{place}\t{sentence}" for place, sentence in sample(ROOT, options.sample, options.seed))
        return
    texts = dict(readable_texts(ROOT))
    _warn(texts, is_verbose=options.warn)
    found = [(name, hit) for name, text in texts.items() for hit in banned_in(text)]
    _write(f"{name}:{line}: “{phrase}”" for name, (line, phrase) in found)
    if found:
        sys.exit("prose: rewrite these sentences: short, direct, active (docs/glossary.md has the words)")


def readable_texts(root: Path) -> Iterator[tuple[str, str]]:
    """Give every text that people read, by the name of its file; lines keep their numbers."""
    for page in [root / "README.md", root / "CONTRIBUTING.md", *sorted(root.glob("docs/**/*.md"))]:
        yield str(page.relative_to(root)), without_code(page.read_text(encoding="utf-8"))
    yield "CHANGELOG.md", unreleased(root)
    for source in sources(root):
        text = source.read_text(encoding="utf-8")
        words = messages_of(text) if source.suffix == ".py" else _COMMENT.sub(_blank, text)
        yield str(source.relative_to(root)), words


def unreleased(root: Path) -> str:
    """Return the part of the changelog that can still be rewritten."""
    changelog = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    return re.split(r"^## \[\d", changelog, maxsplit=1, flags=re.MULTILINE)[0]


def sources(root: Path) -> list[Path]:
    """Return the sources whose strings people read."""
    page = [*root.glob("web/src/**/*.svelte"), *root.glob("web/src/**/*.ts")]
    page = [source for source in page if not source.name.endswith((".test.ts", ".d.ts"))]
    return sorted([*root.glob("src/gpuherd/**/*.py"), *page])


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


def strings_of(source: str) -> Iterator[str]:
    """Give the messages of a module: strings that are not docstrings and read like a sentence."""
    tree = ast.parse(source)
    inner = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    inner |= {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if id(node) in inner:
            continue
        if isinstance(node, ast.JoinedStr):
            parts = (part.value if isinstance(part, ast.Constant) else "{…}" for part in node.values)
            yield "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def page_strings_of(source: str) -> Iterator[str]:
    """Give the strings of a page's source and the text between its tags."""
    text = _COMMENT.sub(
        "", re.sub(r"<style.*?</style>|^import .*?;$", "", source, flags=re.DOTALL | re.MULTILINE)
    )
    for hit in re.finditer(r"\"([^\"\n]+)\"|`([^`]+)`|(?<=[\w\"'}])>([^<>{}=;]+)<", text):
        yield next(part for part in hit.groups() if part)


def sentences(root: Path) -> Iterator[tuple[str, str]]:
    """Give every sentence that users read, with its file: documentation, help, messages and the page.

    The references of commands and routes stand for ``--help`` and the API's descriptions, from which they are made.
    """
    pages = [root / "README.md", root / "CONTRIBUTING.md", *sorted(root.glob("docs/**/*.md"))]
    texts = [(str(page.relative_to(root)), page.read_text(encoding="utf-8")) for page in pages]
    texts.append(("CHANGELOG.md", unreleased(root)))
    for source in sources(root):
        find = strings_of if source.suffix == ".py" else page_strings_of
        strings = filter(_READS_LIKE_A_SENTENCE.match, find(source.read_text(encoding="utf-8")))
        texts += [(str(source.relative_to(root)), string) for string in strings]
    for name, text in texts:
        for sentence in sentences_of(text):
            yield name, sentence


def sample(root: Path, count: int, seed: int) -> list[tuple[str, str]]:
    """Draw sentences of everything that users read; a sentence that occurs several times counts once."""
    every = sorted({sentence: name for name, sentence in sentences(root)}.items())
    drawn = random.Random(seed).sample(every, min(count, len(every)))  # noqa: S311 - a sample, not a secret
    return [(name, sentence) for sentence, name in drawn]


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
