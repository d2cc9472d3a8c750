"""The log of hub and agent: one line per message, as text or JSON, that nobody else can forge."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

PROGRAM = """
import logging, sys
from gpuherd.cli.log import start_log
start_log(sys.argv[1], sys.argv[2])
log = logging.getLogger("gpuherd.test")
log.debug("details")
log.info("node %s joined", "evil\\n2026-01-01 00:00:00,000 ERROR \\x1b[31mforged\\u202e")
logging.getLogger("asyncssh").info("chatter")
try:
    raise ValueError("first\\n2026-01-01 00:00:00,000 ERROR forged")
except ValueError:
    log.exception("failed")
"""


def logged(log_format: str, log_level: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, log_format, log_level], capture_output=True, check=True, text=True
    )
    assert done.stdout == ""
    return done.stderr.splitlines()


def test_text_has_one_line_per_message_and_indented_tracebacks() -> None:
    lines = logged("text", "info")
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} INFO node evil\\n2026-01-01 00:00:00,000 ERROR "
        r"\\x1b\[31mforged\\u202e joined",
        lines[0],
    )
    assert lines[1].endswith(" ERROR failed")
    assert all(line.startswith("    ") for line in lines[2:])
    assert not any("chatter" in line or "details" in line for line in lines)


def test_json_has_one_object_per_line() -> None:
    first, second = (json.loads(line) for line in logged("json", "info"))
    assert first["level"] == "info"
    assert first["logger"] == "gpuherd.test"
    assert first["message"].startswith("node evil\n2026")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", first["time"])
    assert second["level"] == "error"
    assert "ValueError: first" in second["traceback"]


@pytest.mark.parametrize(("level", "lines"), [("debug", 3), ("warning", 1), ("error", 1)])
def test_levels(level: str, lines: int) -> None:
    assert len(logged("json", level)) == lines
