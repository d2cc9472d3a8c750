"""docs/logs.md lists exactly the messages that the code logs, with their levels."""

from __future__ import annotations

import re
from pathlib import Path

from support.logged import logged_messages

PAGE = Path(__file__).parents[2] / "docs/logs.md"
ROW = re.compile(r"^\| (`+)(?P<message>.+?)\1 \| (?P<level>[a-z ]+) \| (?P<meaning>.+) \|$", re.MULTILINE)


def test_every_message_is_listed_with_its_level_and_a_meaning() -> None:
    listed = {row["message"]: row["level"] for row in ROW.finditer(PAGE.read_text(encoding="utf-8"))}
    logged = logged_messages()
    assert len(logged) > 100
    assert listed == logged


def test_every_background_task_is_listed() -> None:
    """What fails is logged with the task's name: ``TASK: REASON``."""
    started = re.compile(r"supervisor\.add\(\s*f?\"(?P<name>[^\"{]+)")
    sources = (PAGE.parents[1] / "src/gpuherd").rglob("*.py")
    names = {found["name"].strip() for file in sources for found in started.finditer(file.read_text("utf-8"))}
    assert len(names) > 15
    page = PAGE.read_text(encoding="utf-8")
    assert {name for name in names if f"`{name}" not in page} == set()
