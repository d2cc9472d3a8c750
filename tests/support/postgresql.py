"""A real PostgreSQL server, reached only through a socket file, that can be frozen, killed and started again."""

from __future__ import annotations

import itertools
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
from sqlalchemy import Engine, create_engine, insert, text

from gpuherd.records.database import NEWEST, open_records
from gpuherd.records.tables import audit_retention, booking_revision, metadata, node_revision, people_revision
from support.running import PATIENCE_SECONDS, frozen, stand_still

__all__ = ["Postgresql", "running_postgresql", "why_no_postgresql"]

_OPTIONS = "-c listen_addresses= -c max_connections=200"


def _programs() -> Path | None:
    for program in [*Path("/usr/lib/postgresql").glob("*/bin/initdb"), shutil.which("initdb")]:
        if program is not None:
            return Path(program).resolve().parent
    return None


def why_no_postgresql() -> str | None:
    """Say what is missing for a server of our own; None if nothing is."""
    return None if _programs() is not None else "PostgreSQL is not installed; scripts/provision installs it"


class Postgresql:
    """A server with databases of our own."""

    def __init__(self, folder: Path, programs: Path, user: str, *, durable: bool) -> None:
        self._folder = folder
        self._programs = programs
        self._user = user
        # Otherwise written through the kernel, not to the disk: killed servers are tried here, not power cuts.
        self._options = _OPTIONS if durable else f"{_OPTIONS} -c fsync=off -c autovacuum=off"
        self._numbers = itertools.count(1)
        self._emptied: list[str] = []

    def run(self, program: str, *arguments: str | Path) -> None:
        """Run one of PostgreSQL's own programs; the server refuses to run as root."""
        subprocess.run(
            [self._programs / program, *arguments],
            user=self._user,
            cwd="/",
            check=True,
            capture_output=True,
            timeout=PATIENCE_SECONDS,
        )

    def start(self) -> None:
        """Start the server and wait for it."""
        options = f"{self._options} -c unix_socket_directories={self._folder}"
        log = self._folder / "log"
        self.run("pg_ctl", "-D", self._folder / "data", "-w", "-l", log, "-o", options, "start")

    def stop(self) -> None:
        """Stop it as a crash would: nothing is finished, recovery happens at the next start."""
        self.run("pg_ctl", "-D", self._folder / "data", "-w", "-m", "immediate", "stop")

    def _stand_still(self) -> list[psutil.Process]:
        """Stop every process of the server; the first one first, so that it starts no other meanwhile."""
        pid = int((self._folder / "data" / "postmaster.pid").read_text().splitlines()[0])
        stand_still(pid)
        postmaster = psutil.Process(pid)
        stopped = [postmaster]
        for child in postmaster.children(recursive=True):
            with suppress(ProcessLookupError, FileNotFoundError):  # a connection that was closed just now
                stand_still(child.pid)
                stopped.append(child)
        return stopped

    def kill(self) -> None:
        """Kill every process of the server at once; standing still, none is alarmed by the first death."""
        processes = self._stand_still()
        for process in processes:
            process.kill()
        psutil.wait_procs(processes, timeout=PATIENCE_SECONDS)

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Let every process stand still for a while."""
        with frozen(*(process.pid for process in self._stand_still())):
            yield

    def url(self, name: str) -> str:
        """Give a database's address, without the driver's name, as people write it."""
        return f"postgresql://gpuherd@/{name}?host={self._folder}"

    @contextmanager
    def administering(self) -> Iterator[Engine]:
        """Open the server's own database."""
        engine = create_engine(
            self.url("postgres").replace("postgresql:", "postgresql+psycopg:"), isolation_level="AUTOCOMMIT"
        )
        try:
            yield engine
        finally:
            engine.dispose()

    def execute(self, statement: str) -> None:
        """Run a statement in the server's own database."""
        with self.administering() as engine, engine.connect() as connection:
            connection.execute(text(statement))

    @contextmanager
    def database(self, *, migrated: bool = False) -> Iterator[str]:
        """Make a database, empty or with the tables of the records, and give its URL."""
        if migrated and self._emptied:
            name = self._emptied.pop()
        else:
            name = f"records{next(self._numbers)}"
            self.execute(f"CREATE DATABASE {name} TEMPLATE template0")
            if migrated:
                open_records(self.url(name)).dispose()
        try:
            yield self.url(name)
        finally:
            if migrated:
                self._empty(name)
                self._emptied.append(name)
            else:
                self.execute(f"DROP DATABASE {name} WITH (FORCE)")

    def _empty(self, name: str) -> None:
        """Make the tables as new: much quicker than migrating for every test."""
        self.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'")  # noqa: S608
        engine = create_engine(self.url(name).replace("postgresql:", "postgresql+psycopg:"))
        try:
            with engine.begin() as connection:
                connection.execute(text("SET session_replication_role = replica"))  # no triggers
                tables = ", ".join(table.name for table in metadata.sorted_tables)
                connection.execute(text(f"TRUNCATE {tables} RESTART IDENTITY"))
                for revision in (node_revision, people_revision, booking_revision):
                    connection.execute(insert(revision).values(id=1, number=0))
                connection.execute(insert(audit_retention).values(id=1, keep_from=0.0))
                connection.execute(text("UPDATE alembic_version SET version_num = :it"), {"it": NEWEST})
        finally:
            engine.dispose()


@contextmanager
def running_postgresql(*, durable: bool = False) -> Iterator[Postgresql]:
    """Run a server in a folder of its own; a durable one for measuring."""
    programs = _programs()
    assert programs is not None
    user = "postgres" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name
    folder = Path(tempfile.mkdtemp(prefix="gpuherd-pg-"))
    try:
        if os.geteuid() == 0:
            shutil.chown(folder, user, user)
        server = Postgresql(folder, programs, user, durable=durable)
        locale = ("--no-sync", "--locale=C", "-E", "UTF8")
        server.run("initdb", "-D", folder / "data", "-A", "trust", "-U", "gpuherd", *locale)
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
