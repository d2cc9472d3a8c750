"""docs/protocol.md stays true: every frame, field, column and cap is in it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gpuherd.model.columns import COLUMNS
from gpuherd.wire.codec import MAX_FRAME_BYTES
from gpuherd.wire.frames import (
    PROTOCOL_MINOR,
    SUBPROTOCOL,
    Ack,
    FactsFrame,
    Hello,
    Notice,
    Pace,
    PastFrames,
    SampleFrame,
    TableFrame,
    Welcome,
)
from gpuherd.wire.proof import LINK_PATH, PROOF_SECONDS, REPLACED, UNPROVEN, AgentProof, Challenge, HubProof

PAGE = (Path(__file__).parents[3] / "docs" / "protocol.md").read_text(encoding="utf-8")
FRAMES = (
    Hello,
    FactsFrame,
    TableFrame,
    SampleFrame,
    PastFrames,
    Welcome,
    Ack,
    Notice,
    Pace,
    Challenge,
    HubProof,
    AgentProof,
)


@pytest.mark.parametrize("frame", FRAMES)
def test_every_frame_and_field_is_told(frame: type) -> None:
    tag = frame.__struct_config__.tag  # type: ignore[attr-defined]
    assert re.search(rf"^`{tag}`", PAGE, re.MULTILINE), f"{tag} has no paragraph of its own"
    fields = frame.__struct_fields__  # type: ignore[attr-defined]
    assert [name for name in fields if not re.search(rf"`{name}\??`", PAGE)] == []


@pytest.mark.parametrize("part", COLUMNS)
def test_every_column_is_listed_in_order(part: str) -> None:
    listed = re.search(rf"^- `{part}`: ([\w,\s]+?)\n(?=- |\n)", PAGE, re.MULTILINE)
    assert listed is not None
    assert re.split(r",\s+", listed[1]) == [column.name for column in COLUMNS[part]]


def test_the_name_and_the_size_cap_are_told() -> None:
    assert SUBPROTOCOL in PAGE
    assert f"{MAX_FRAME_BYTES:,}" in PAGE
    assert f"\n- 1.{PROTOCOL_MINOR}:" in PAGE


def test_how_a_listening_agent_is_reached_is_told() -> None:
    assert all(f"`{word}`" in PAGE for word in (LINK_PATH, UNPROVEN, REPLACED))
    assert f"{PROOF_SECONDS:.0f} s" in PAGE
