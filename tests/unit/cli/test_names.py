"""Names that a shell completes."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path

import click
import pytest

from gpuherd.cli.names import (
    FRESH_SECONDS,
    KEPT_SECONDS,
    complete_node_or_user,
    complete_place,
    known_nodes,
    remember_names,
)
from gpuherd.client.herd_views import Herd
from support.seen_herd import NOW, every_state, gpu, node

CONTEXT = click.Context(click.Command("any"))
ARGUMENT = click.Argument(["any"])


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "gpuherd/names.json"


def test_names_that_were_seen_are_known(file: Path) -> None:
    assert known_nodes("") == []
    remember_names(every_state())
    assert known_nodes("gpu1") == ["gpu10", "gpu11", "gpu12"]
    assert complete_node_or_user(CONTEXT, ARGUMENT, "a") == ["ada"]
    assert complete_place(CONTEXT, ARGUMENT, "gpu07") == ["gpu07/"]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [one.name for one in file.parent.iterdir()] == ["names.json"]


def test_they_are_written_seldom_and_known_for_a_week(file: Path) -> None:
    remember_names(every_state())
    remember_names(Herd(time=NOW))
    assert known_nodes("gpu07") == ["gpu07"]
    old = time.time() - FRESH_SECONDS - 1
    os.utime(file, (old, old))
    remember_names(Herd(time=NOW, nodes=(node("other"),)))
    assert known_nodes("") == ["other"]
    ancient = time.time() - KEPT_SECONDS - 1
    os.utime(file, (ancient, ancient))
    assert known_nodes("") == []


@pytest.mark.parametrize("name", ["$(reboot)", "a b", "a;b", "-rf", "a\nplain,b", "\x1b[2J", "a`b`", "é"])
def test_what_a_shell_would_act_on_is_never_offered(file: Path, name: str) -> None:
    remember_names(Herd(time=NOW, nodes=(node(name, gpu(0, "busy", users=(name,))), node("good"))))
    assert complete_node_or_user(CONTEXT, ARGUMENT, "") == ["good"]


@pytest.mark.parametrize(
    "content", [b"", b"[]", b'{"nodes": 3}', b'{"nodes": [1]}', b"\xff", b'{"nodes": ["$(x)"]}']
)
def test_a_damaged_file_is_no_harm(file: Path, content: bytes) -> None:
    file.parent.mkdir(parents=True)
    file.write_bytes(content)
    assert known_nodes("") == []


def test_a_folder_that_cannot_be_written_is_no_harm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gpuherd").write_text("a file")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    remember_names(every_state())
    assert known_nodes("") == []
