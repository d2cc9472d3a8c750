"""All records to a file and back, also into the other kind of database; whatever is wrong with it changes nothing."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from sqlalchemy import Engine, func, insert, select, text

from gpuherd.api.state_dir import lock_state_dir
from gpuherd.cli.hub import command
from gpuherd.model.errors import Failed, Misconfigured, Refused
from gpuherd.model.people import Actor
from gpuherd.records.audit import AuditRecords
from gpuherd.records.backup import restore_backup, write_backup
from gpuherd.records.booking_keys import key_of
from gpuherd.records.bookings import BookingRecords, Conflict
from gpuherd.records.database import NEWEST, open_records, records_file
from gpuherd.records.nodes import NodeRecords
from gpuherd.records.people import PeopleRecords
from gpuherd.records.tables import device_faults, hub_leases, known_devices, metadata
from support.booking_drafts import BY, NOW, START, A, B, draft
from support.postgresql import Postgresql

KEPT_OUT = {"login_sessions", "setup_codes", "join_tokens", "booking_keys", "hub_leases"}
COUNTS = {"node_revision", "people_revision", "booking_revision"}


def fill(engine: Engine) -> None:
    """Put something into every table."""
    nodes, people, bookings = NodeRecords(engine), PeopleRecords(engine), BookingRecords(engine)
    nodes.add_token(digest="join", now=NOW, expires_at=NOW + 9e9, uses=2)
    nodes.enrol(node_id="n1", name="Ä 🐑", credential="digest of n1", now=5.123456789)
    ada = people.create_account(
        name="ada",
        display_name="Ada\nLovelace “☕”",
        role="admin",
        source="oidc",
        subject="17",
        password_hash="$argon2id$…",
        groups=["vision"],
        linux_names=["alovelace"],
        now=NOW,
        by=BY,
    ).id
    people.add_session(
        id="s", digest="d1", account_id=ada, created_at=NOW, expires_at=NOW + 9e9, peer="p", agent="a"
    )
    people.add_token(
        id="t",
        digest="d2",
        account_id=ada,
        title="",
        scopes=["book"],
        created_at=NOW,
        expires_at=NOW + 9e9,
        by=BY,
    )
    people.add_feed(id="f", digest="d3", account_id=ada, kind="device", device=A, created_at=NOW, by=BY)
    people.put_setup_code("d4", NOW + 9e9, now=NOW)
    people.secret("pseudonyms")
    with engine.begin() as connection:  # of a hub that has been killed long ago
        connection.execute(insert(hub_leases).values(id="l", host="h", pid=7, renewed_at=5.0))
        gpu = {"node_id": "n1", "uuid": "GPU-1"}
        connection.execute(
            insert(known_devices).values(**gpu, gpu_index=1, name="A100", vendor="NVIDIA", missing_since=7.5)
        )
        connection.execute(
            insert(device_faults).values(
                **gpu, code="xid", message="Xid 79", since=6.25, acknowledged_count=0
            )
        )
    by = Actor(account_id=ada, label="ada", peer="192.0.2.1")
    bookings.create(
        [draft(A, B, owner_id=ada, comment='"\\ \t'), draft(A, at=START + 604_800)], now=NOW, by=by
    )
    first = bookings.create([draft(A, at=START + 9 * 3600)], now=NOW, by=by)[0]
    bookings.change(first.id, revision=None, now=NOW, by=by, state="cancelled")
    key = key_of(ada, "key", b"")
    bookings.create([draft(A, at=START + 9 * 3600)], now=NOW, by=by, key=key)


def content(location: Path | str) -> dict[str, list[Any]]:
    engine = open_records(location)
    try:
        with engine.connect() as connection:
            return {
                table.name: sorted(connection.execute(select(table)), key=repr)
                for table in metadata.sorted_tables
            }
    finally:
        engine.dispose()


@pytest.fixture
def places(
    tmp_path: Path, migrated_sqlite: Path, request: pytest.FixtureRequest
) -> Iterator[Callable[[str], Path | str]]:
    """Gives a new place with empty tables in the backend that is named."""
    with ExitStack() as stack:

        def place(backend: str) -> Path | str:
            if backend == "sqlite":
                folder = tmp_path / f"state{len(list(tmp_path.iterdir()))}"
                folder.mkdir()
                return Path(shutil.copy(migrated_sqlite, records_file(folder)))
            server: Postgresql = request.getfixturevalue("postgresql")
            return stack.enter_context(server.database(migrated=True))

        yield place


@pytest.fixture
def filled(places: Callable[[str], Path | str]) -> Path:
    """Records with something in every table."""
    location = places("sqlite")
    assert isinstance(location, Path)
    engine = open_records(location)
    fill(engine)
    engine.dispose()
    return location


@pytest.fixture
def saved(filled: Path, tmp_path: Path) -> Path:
    """A backup of them."""
    write_backup(filled, tmp_path / "backup", now=NOW)
    return tmp_path / "backup"


@pytest.mark.parametrize("to", ["sqlite", "postgresql"])
@pytest.mark.parametrize("of", ["sqlite", "postgresql"])
def test_everything_comes_back_in_either_database(
    places: Callable[[str], Path | str], tmp_path: Path, of: str, to: str
) -> None:
    source, target, file = places(of), places(to), tmp_path / "backup"
    engine = open_records(source)
    fill(engine)
    with engine.connect() as connection:
        assert [
            table.name
            for table in metadata.sorted_tables
            if not connection.execute(select(func.count()).select_from(table)).scalar_one()
        ] == []
    engine.dispose()
    before = content(source)

    written = write_backup(source, file, now=NOW)
    assert file.stat().st_mode & 0o777 == 0o600
    restored = restore_backup(file, target, now=NOW + 5)
    assert restored == written
    assert written.rows == sum(len(rows) for name, rows in before.items() if name not in KEPT_OUT)

    after = content(target)
    for name in set(before) - KEPT_OUT - COUNTS - {"audit"}:
        assert after[name] == before[name], name
    assert {name: after[name] for name in KEPT_OUT} == {name: [] for name in KEPT_OUT}
    assert {name: after[name][0].number for name in COUNTS} == {
        name: before[name][0].number + 1 for name in COUNTS
    }
    assert set(after["audit"]) > set(before["audit"])

    engine = open_records(target)  # and goes on from there
    bookings, log = BookingRecords(engine), AuditRecords(engine)
    entry = log.search()[0]
    assert (entry.action, entry.who, entry.detail) == (
        "records.restore",
        "command line",
        "backup of 2027-01-15 08:00 UTC",
    )
    with pytest.raises(Conflict):
        bookings.create([draft(B)], now=NOW, by=BY)
    made = bookings.create([draft(B, at=START + 7200)], now=NOW, by=BY)[0]
    assert made.id == 5
    assert made.revision == bookings.revision()
    with pytest.raises(Exception, match="audit_append_only"), engine.begin() as connection:
        connection.execute(text("DELETE FROM audit"))
    engine.dispose()


@pytest.mark.parametrize("backend", ["sqlite", "postgresql"])
def test_records_are_not_lost_unless_that_is_said(
    places: Callable[[str], Path | str], saved: Path, backend: str
) -> None:
    target = places(backend)
    engine = open_records(target)
    NodeRecords(engine).enrol(node_id="precious", name="p", credential="d", now=1.0)
    engine.dispose()
    before = content(target)
    with pytest.raises(Refused, match="add --replace") as caught:
        restore_backup(saved, target)
    assert caught.value.code == "records_not_empty"
    assert content(target) == before
    restore_backup(saved, target, replace=True)
    assert [row.id for row in content(target)["nodes"]] == ["n1"]


def test_a_place_without_tables_will_do(saved: Path, tmp_path: Path) -> None:
    restore_backup(saved, tmp_path / "new" / "records.sqlite")
    assert len(content(tmp_path / "new" / "records.sqlite")["bookings"]) == 4


def _rewritten(file: Path, change: Callable[[list[bytes]], list[bytes]]) -> None:
    file.write_bytes(gzip.compress(b"".join(change(gzip.decompress(file.read_bytes()).splitlines(True)))))


def _flipped(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def _newer_tables(lines: list[bytes]) -> list[bytes]:
    return [lines[0].replace(NEWEST.encode(), b"0099"), *lines[1:]]


def _newer_format(lines: list[bytes]) -> list[bytes]:
    return [lines[0].replace(b'"gpuherd_backup":1', b'"gpuherd_backup":2'), *lines[1:]]


@pytest.mark.parametrize(
    ("harm", "code", "words"),
    [
        (lambda file: file.write_bytes(file.read_bytes()[:-20]), "backup_damaged", "copy it again"),
        (lambda file: file.write_bytes(file.read_bytes()[:300]), "backup_damaged", "incomplete"),
        (_flipped, "backup_damaged", "damaged"),
        (lambda file: _rewritten(file, lambda lines: lines[:-1]), "backup_damaged", "incomplete"),
        (lambda file: _rewritten(file, lambda lines: lines[:5] + lines[6:]), "backup_damaged", "damaged"),
        (lambda file: _rewritten(file, lambda lines: lines[:1]), "backup_damaged", "damaged"),
        (lambda file: file.write_bytes(b""), "no_backup", "is not a backup"),
        (lambda file: file.write_bytes(b"PK something else" * 99), "no_backup", "is not a backup"),
        (lambda file: file.write_bytes(gzip.compress(b'{"other": 1}\n')), "no_backup", "is not a backup"),
        (lambda file: file.write_bytes(gzip.compress(b"\xff\xfe")), "no_backup", "is not a backup"),
        (lambda file: file.unlink(), "no_backup", "No such file"),
        (lambda file: _rewritten(file, _newer_tables), "backup_newer", "install that version"),
        (lambda file: _rewritten(file, _newer_format), "backup_newer", "install that version"),
    ],
)
def test_a_bad_backup_is_refused_and_changes_nothing(
    filled: Path, saved: Path, harm: Callable[[Path], object], code: str, words: str
) -> None:
    harm(saved)
    before = content(filled)
    with pytest.raises(Refused, match=words) as caught:
        restore_backup(saved, filled, replace=True)
    assert caught.value.code == code
    assert content(filled) == before


def _forged(lines: list[bytes]) -> list[bytes]:
    """Let two bookings overlap, with a checksum that is right."""
    changed = [line.replace(b'"cancelled",false', b'"active",true') for line in lines[:-1]]
    changed = [
        line.replace(b",false]", b",true]") if line.startswith(b"[3,") and b"GPU-a" in line else line
        for line in changed
    ]
    assert changed != lines[:-1]
    end = {"rows": json.loads(lines[-1])["rows"], "sha256": hashlib.sha256(b"".join(changed)).hexdigest()}
    return [*changed, json.dumps(end).encode()]


@pytest.mark.parametrize("backend", ["sqlite", "postgresql"])
def test_what_the_database_refuses_half_way_changes_nothing(
    places: Callable[[str], Path | str], saved: Path, backend: str
) -> None:
    target = places(backend)
    restore_backup(saved, target)
    before = content(target)
    _rewritten(saved, _forged)
    with pytest.raises(Failed, match="nothing was changed") as caught:
        restore_backup(saved, target, replace=True)
    assert caught.value.__cause__ is None
    assert content(target) == before


def test_a_backup_of_the_first_release_is_migrated(tmp_path: Path, saved: Path) -> None:
    """Its tables come into being as they were, and then go the way of all records."""
    lines = [
        b'{"gpuherd_backup":1,"schema":"0001","program":"0.1","created_at":1.0}\n',
        b'{"table":"node_revision","columns":["id","number"],"base64":[]}\n',
        b"[1,41]\n",
        b'{"table":"nodes","columns":["id","name","enrolled_at"],"base64":[]}\n',
        b'["a","A",5.5]\n',
    ]
    end = {"rows": 2, "sha256": hashlib.sha256(b"".join(lines)).hexdigest()}
    saved.write_bytes(gzip.compress(b"".join(lines) + json.dumps(end).encode()))
    restore_backup(saved, tmp_path / "records.sqlite")
    engine = open_records(tmp_path / "records.sqlite")
    assert NodeRecords(engine).revision() == 42
    assert BookingRecords(engine).create([draft(A)], now=NOW, by=BY)[0].id == 1
    engine.dispose()


def test_records_of_a_newer_version_are_not_replaced(filled: Path, saved: Path) -> None:
    engine = open_records(filled)
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    engine.dispose()
    with pytest.raises(Misconfigured, match="newer gpuherd"):
        restore_backup(saved, filled, replace=True)


def test_a_backup_that_cannot_be_written_leaves_the_last_one(
    filled: Path, saved: Path, tmp_path: Path
) -> None:
    before = saved.read_bytes()
    with pytest.raises(Failed, match=r"cannot write .*nowhere"):
        write_backup(filled, tmp_path / "nowhere" / "backup")
    with pytest.raises(Refused, match=r"is hub\.state_dir right"):
        write_backup(tmp_path / "elsewhere" / "records.sqlite", saved)
    assert saved.read_bytes() == before
    assert not list(tmp_path.glob(".*"))


def test_the_commands(filled: Path, tmp_path: Path) -> None:
    def run(*arguments: str | Path) -> Any:
        return CliRunner().invoke(command, [str(argument) for argument in arguments])

    file, new = tmp_path / "file", tmp_path / "new"
    result = run("--state-dir", filled.parent, "backup", file)
    assert result.exit_code == 0
    assert result.output.splitlines() == [
        f"{len_of(file)} rows written to {file}",
        f"History (samples and usage) is not included; to keep it, also copy {filled.parent}/history",
    ]
    result = run("--state-dir", new, "restore", file)
    assert result.exit_code == 0, result.exception
    assert "rows restored from the backup of" in result.output
    assert content(records_file(new))["bookings"] == content(filled)["bookings"]
    again = run("--state-dir", new, "restore", file)
    assert isinstance(again.exception, Refused)
    assert run("--state-dir", new, "restore", file, "--replace").exit_code == 0


@pytest.mark.promise("restore-refused-under-a-hub")
def test_a_restore_waits_for_no_hub_and_goes_under_none(filled: Path, saved: Path) -> None:
    hub = lock_state_dir(filled.parent)  # as a hub does that runs
    before = content(filled)
    place = ["--state-dir", str(filled.parent), "restore", str(saved), "--replace"]
    refused = CliRunner().invoke(command, place)
    assert isinstance(refused.exception, Refused)
    assert refused.exception.code == "hub_running"
    assert str(filled.parent) in str(refused.exception)
    assert content(filled) == before
    os.close(hub)
    assert CliRunner().invoke(command, place).exit_code == 0

    # And no hub starts while it is under way.
    def hold() -> AbstractContextManager[object]:
        with pytest.raises(Misconfigured, match="restore"):
            lock_state_dir(filled.parent)
        return nullcontext()

    lock = lock_state_dir(filled.parent)
    restore_backup(saved, filled, replace=True, holding=hold)
    os.close(lock)


def test_a_refused_backup_leaves_nothing_in_a_new_folder(saved: Path, tmp_path: Path) -> None:
    saved.write_bytes(saved.read_bytes()[:-20])
    new = tmp_path / "new"
    refused = CliRunner().invoke(command, ["--state-dir", str(new), "restore", str(saved)])
    assert isinstance(refused.exception, Refused)
    assert not new.exists()


def test_what_a_killed_backup_left_is_removed_by_the_next_one(
    filled: Path, saved: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "backups"
    folder.mkdir()
    with subprocess.Popen(["true"]) as gone:
        pass
    left = saved.read_bytes()[:-9]
    ours = [folder / f".{name}.{gone.pid}.partial" for name in ("monday.gz", "tuesday", "empty")]
    for path, what in zip(ours, (left, left[:10], b""), strict=True):
        path.write_bytes(what)
        path.chmod(0o600)
    others = [
        folder / f".monday.gz.{os.getpid()}.partial",  # of a process that is at work
        folder / f".film.mkv.{gone.pid}.partial",  # not a backup
        folder / f".readable.{gone.pid}.partial",  # not written by us: only its owner could read that
        folder / f"monday.gz.{gone.pid}.partial",
    ]
    for path in others:
        path.write_bytes(left if "film" not in path.name else b"\x1a\x45\xdf\xa3 something else")
        path.chmod(0o644 if "readable" in path.name else 0o600)
    link = folder / f".link.{gone.pid}.partial"
    link.symlink_to(saved)
    write_backup(filled, folder / "wednesday.gz")
    assert sorted(folder.iterdir()) == sorted([*others, link, folder / "wednesday.gz"])
    assert saved.exists()


def len_of(file: Path) -> int:
    return int(json.loads(gzip.decompress(file.read_bytes()).splitlines()[-1])["rows"])
