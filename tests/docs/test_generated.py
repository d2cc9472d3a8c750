"""What is written from the code is up to date and whole: settings, commands, options, routes, manual pages."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import msgspec
import pytest
from scripts.command_tree import Command, commands
from scripts.write_docs import generated_pages, write_pages

from gpuherd.cli import _COMMANDS

ROOT = Path(__file__).parents[2]
GENERATED = generated_pages()
EVERY_COMMAND = tuple(commands())


@pytest.mark.parametrize("path", sorted(GENERATED))
def test_a_generated_page_is_up_to_date(path: str) -> None:
    assert (ROOT / path).read_text(encoding="utf-8") == GENERATED[path], "run `make generate`"


def test_no_manual_page_is_left_of_a_command_that_is_gone(tmp_path: Path) -> None:
    there = {f"docs/man/{page.name}" for page in (ROOT / "docs/man").iterdir()}
    assert there == {path for path in GENERATED if path.startswith("docs/man/")}
    (tmp_path / "docs/man").mkdir(parents=True)
    (tmp_path / "docs/man/gpuherd-gone.1").touch()
    write_pages(tmp_path)
    assert not (tmp_path / "docs/man/gpuherd-gone.1").exists()
    assert (tmp_path / "docs/man/gpuherd-book.1").is_file()


@pytest.mark.parametrize("command", EVERY_COMMAND, ids=lambda command: command.name)
def test_every_command_and_option_says_what_it_is_for(command: Command) -> None:
    assert command.paragraphs[0].text.endswith((".", ":")), (
        f"{command.name}: a help text is made of sentences"
    )
    assert [option.names for option in command.options if not option.meaning.strip()] == []
    assert [
        option.names for option in command.options if re.search(r" _|INTEGER RANGE\b.*RANGE", option.names)
    ] == []


def test_every_command_is_in_the_reference_and_has_a_manual_page() -> None:
    page = GENERATED["docs/reference/cli.md"]
    assert [each.name for each in EVERY_COMMAND if each.path and f"# {each.name}\n" not in page] == []
    assert {f"docs/man/gpuherd-{name}.1" for name in _COMMANDS} < GENERATED.keys()


def test_the_api_reference_has_every_route_parameter_and_code() -> None:
    from gpuherd.api.openapi import schema_of
    from gpuherd.api.rest import build_rest

    page = GENERATED["docs/reference/api.md"]
    schema = msgspec.json.decode(schema_of(build_rest(None)))  # type: ignore[arg-type] # described, never called
    sections = {
        part.split("\n", 1)[0]: part
        for part in page.split("## Structures")[0].split("\n### ")
        if "/api/" in part
    }
    routes = [
        (f"{method.upper()} {path}", what)
        for path, all_ in schema["paths"].items()
        for method, what in all_.items()
    ]
    assert len(routes) > 50
    for route, operation in routes:
        section = sections[route]
        assert "\nNeeds " in section, route
        assert all(f"| `{each['name']}` |" in section for each in operation.get("parameters", ())), route
        assert all(f"| {code} |" in section for code in operation["responses"] if code != "default"), route
    assert all(f"\n### {name}\n" in page for name in schema["components"]["schemas"])


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not installed")
def test_manual_pages_are_written_without_a_warning() -> None:
    pages = [ROOT / path for path in sorted(GENERATED) if path.endswith(".1")]
    done = subprocess.run(
        ["groff", "-man", "-Tutf8", "-ww", "-Kutf8", *map(str, pages)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    shown = re.sub(r"\x1b\[[0-9;]*m|.\x08", "", done.stdout)
    assert "GPUHERD-BOOK(1)" in shown
    assert '--until "friday 18:00"' in shown, "examples stay as they are"
