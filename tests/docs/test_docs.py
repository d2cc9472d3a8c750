"""The documentation says what is true."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

from gpuherd.cli import _COMMANDS
from gpuherd.wiring.config import read_config

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("sim/*.md")])


def test_every_dependency_is_explained() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = [
        re.split(r"[<>=!\[ ]", entry)[0]
        for entry in [*project["dependencies"], *project["optional-dependencies"]["hub"]]
    ]
    page = (ROOT / "docs/dependencies.md").read_text()
    assert [name for name in names if name not in page] == []


def test_every_make_target_that_the_docs_name_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    named = {
        target
        for page in PAGES
        for target in re.findall(
            r"(?:^\$ |`)make ([a-z-]+)", page.read_text(encoding="utf-8"), flags=re.MULTILINE
        )
    }
    assert named <= targets
    assert {"run", "demo", "test"} <= named


def test_make_help_lists_every_public_target() -> None:
    listed = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    phony = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
    assert phony is not None
    assert [target for target in phony[1].split() if f"make {target} " not in listed] == []


def test_every_command_that_the_docs_name_exists() -> None:
    named = {
        command
        for page in PAGES
        for command in re.findall(r"(?:[$#] |`)gpuherd ([a-z]+)", page.read_text(encoding="utf-8"))
    }
    assert named <= set(_COMMANDS)
    assert "up" in named


def test_configuration_examples_can_be_read() -> None:
    examples = [
        (document.name, example)
        for document in PAGES
        for example in re.findall(r"```toml\n(.*?)```", document.read_text(encoding="utf-8"), flags=re.DOTALL)
    ]
    assert {name for name, _ in examples} >= {"configuration.md"}
    assert all(read_config(example, name) != read_config("", name) for name, example in examples)


def test_every_decision_is_listed() -> None:
    index = (ROOT / "docs/adr/README.md").read_text()
    assert [page.name for page in ROOT.glob("docs/adr/0*.md") if page.name not in index] == []
