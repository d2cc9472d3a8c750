"""Every promise of the security and reliability pages has a test, and every test of a promise a sentence."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "docs/security.md", ROOT / "docs/reliability.md"]


def promised() -> list[str]:
    """Return the ids that the pages have in comments, as ``<!-- promise: no-device-twice -->``."""
    return [
        identity
        for page in PAGES
        for identity in re.findall(r"<!-- promise: ([a-z0-9-]+) -->", page.read_text(encoding="utf-8"))
    ]


def marked_tests() -> dict[str, list[str]]:
    """Return the files that have tests marked ``@pytest.mark.promise(id)``, by id."""
    found: dict[str, list[str]] = {}
    for file in sorted((ROOT / "tests").glob("**/test_*.py")):
        for identity in _marks(ast.parse(file.read_text(encoding="utf-8"))):
            found.setdefault(identity, []).append(file.name)
    return found


def _marks(tree: ast.Module) -> list[str]:
    return [
        argument.value
        for test in ast.walk(tree)
        if isinstance(test, ast.FunctionDef | ast.AsyncFunctionDef) and test.name.startswith("test_")
        for mark in test.decorator_list
        if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.promise"
        for argument in mark.args
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    ]


def test_a_mark_in_a_test_is_found() -> None:
    tree = ast.parse(
        '@pytest.mark.promise("a", "b")\ndef test_x(): ...\n@pytest.mark.promise("c")\ndef helper(): ...'
    )
    assert _marks(tree) == ["a", "b"]


def test_every_promise_has_a_test() -> None:
    tested = marked_tests()
    assert [identity for identity in promised() if identity not in tested] == []


def test_every_tested_promise_is_on_a_page() -> None:
    pages = set(promised())
    assert {identity: files for identity, files in marked_tests().items() if identity not in pages} == {}


def test_no_promise_is_made_twice() -> None:
    assert [identity for identity, count in Counter(promised()).items() if count > 1] == []


def test_both_pages_promise_something() -> None:
    for page in PAGES:
        assert "<!-- promise: " in page.read_text(encoding="utf-8"), page.name
