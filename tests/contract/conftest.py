"""Every database that the records may live in."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, create_engine, text

from gpuherd.records.database import open_records


def _postgres_programs() -> Path | None:
    for program in [*Path("/usr/lib/postgresql").glob("*/bin/initdb"), shutil.which("initdb")]:
        if program is not None:
            return Path(program).resolve().parent
    return None


@pytest.fixture(scope="session")
def postgresql_url() -> Iterator[str]:
    """A real PostgreSQL server, reached only through a socket file."""
    programs = _postgres_programs()
    if programs is None:
        pytest.skip("PostgreSQL is not installed; scripts/provision installs it")
    pytest.importorskip("psycopg", reason="the extra gpuherd[postgresql] is not installed")
    # The server refuses to run as root.
    user = "postgres" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name
    folder = Path(tempfile.mkdtemp(prefix="gpuherd-pg-"))
    try:
        if os.geteuid() == 0:
            shutil.chown(folder, user, user)

        def run(*command: str | Path) -> None:
            subprocess.run(command, user=user, cwd="/", check=True, capture_output=True, timeout=60)

        data = folder / "data"
        run(
            programs / "initdb",
            "-D",
            data,
            "-A",
            "trust",
            "-U",
            "gpuherd",
            "--no-sync",
            "--locale=C",
            "-E",
            "UTF8",
        )
        options = f"-c listen_addresses= -c unix_socket_directories={folder} -c fsync=off"
        run(programs / "pg_ctl", "-D", data, "-w", "-l", folder / "log", "-o", options, "start")
        try:
            yield f"postgresql+psycopg://gpuherd@/postgres?host={folder}"
        finally:
            run(programs / "pg_ctl", "-D", data, "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(params=["sqlite", "postgresql"])
def records_location(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path | str]:
    """An empty place for records in each backend."""
    if request.param == "sqlite":
        yield tmp_path / "records.sqlite"
        return
    url: str = request.getfixturevalue("postgresql_url")
    server = create_engine(url, isolation_level="AUTOCOMMIT")
    with server.connect() as connection:
        connection.execute(text("CREATE DATABASE records"))
    try:
        # Without the driver's name, as people write it.
        yield url.replace("+psycopg", "").replace("/postgres?", "/records?")
    finally:
        with server.connect() as connection:
            connection.execute(text("DROP DATABASE records WITH (FORCE)"))
        server.dispose()


@pytest.fixture
def engine(records_location: Path | str) -> Iterator[Engine]:
    """Records that are open and empty."""
    engine = open_records(records_location)
    yield engine
    engine.dispose()
