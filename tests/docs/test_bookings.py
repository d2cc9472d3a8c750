"""What docs/bookings.md says can be written can be read, and every refusal is listed there."""

from __future__ import annotations

import re
from pathlib import Path
from zoneinfo import ZoneInfo

from gpuherd.bookings.times import read_end, read_start
from gpuherd.bookings.wishes import read_wish

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/bookings.md").read_text(encoding="utf-8")
NOW = 1_794_820_800


def test_every_example_of_a_time_can_be_read() -> None:
    rows = re.findall(r"^\| (`.*?) \|", PAGE.split("## Times", 1)[1].split("\n## ", 1)[0], flags=re.MULTILINE)
    examples = [example for row in rows for example in re.findall(r"`([^`]+)`", row)]
    assert len(examples) >= 10
    for example in examples:
        assert read_end(example, starts_at=NOW, now=NOW, zone=ZoneInfo("Europe/Berlin")) > NOW, example
    for example in ("now", "in 2h", "tomorrow 9:00"):
        assert f"`{example}`" in PAGE
        assert read_start(example, now=NOW, zone=ZoneInfo("UTC")) >= NOW


def test_every_example_of_a_wish_can_be_read() -> None:
    wishes = re.search(r"\*\*Any\*\* takes(.*?)\n\n", PAGE, flags=re.DOTALL)
    assert wishes is not None
    examples = [text for text in re.findall(r"`([^`]+)`", wishes[1]) if text != "same_node"]
    assert len(examples) >= 4
    assert all(read_wish(text).count >= 1 for text in examples)


def test_every_refusal_is_listed() -> None:
    source = "\n".join(
        (ROOT / "src/gpuherd/bookings" / f"{name}.py").read_text(encoding="utf-8")
        for name in ("asking", "changes", "choosing", "desk", "policy", "series", "times", "wishes")
    )
    raised = set(re.findall(r'(?:Unfit|UnclearTime|Untimely|Forbidden|Refused)\(\s*"([a-z_]+)"', source))
    assert {"unknown_device", "past", "not_yours", "unreadable_time", "unknown_booking"} <= raised
    listed = set(re.findall(r"`([a-z_]+)`", PAGE.split("Errors name the field", 1)[1]))
    assert sorted(raised - listed) == []
