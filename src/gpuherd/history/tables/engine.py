"""DuckDB within bounds: memory, threads, time, and no files but those of one folder."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gpuherd.history.tables.deadlines import Deadlines
from gpuherd.model.errors import Failed

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["Columns", "Engine", "TooLong", "TooMuch", "Unreadable", "named", "quoted"]

Columns = Mapping[str, NDArray[Any]]


class TooMuch(Failed):
    """A question needs more memory than it may have."""


class TooLong(Failed):
    """A question was not answered in time."""


class Unreadable(Failed):
    """Some file makes no sense."""


class Engine:
    """A DuckDB in memory whose tables are files. From any thread, several at a time."""

    def __init__(self, folder: Path, *, memory_bytes: int, threads: int = 2, name: str = "readers") -> None:
        import duckdb  # noqa: PLC0415 - 25 MB, and only a hub with history needs them

        self._errors = duckdb
        spill = folder / "spill" / name
        spill.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._root = duckdb.connect(
            ":memory:",
            config={
                "threads": threads,
                "memory_limit": f"{memory_bytes}B",
                "temp_directory": str(spill),
                "max_temp_directory_size": f"{4 * memory_bytes}B",
                "autoinstall_known_extensions": "false",
                "autoload_known_extensions": "false",
                "allow_community_extensions": "false",
                "python_enable_replacements": "false",
            },
        )
        self._root.execute("SET parquet_metadata_cache = true")
        self._root.execute("SET TimeZone = 'UTC'")
        self._root.execute(f"SET allowed_directories = [{quoted(str(folder.absolute()))}]")
        self._root.execute("SET enable_external_access = false")
        self._root.execute("SET lock_configuration = true")
        self._idle: list[DuckDBPyConnection] = []
        self._lending = threading.Lock()
        self._deadlines = Deadlines()

    def query(
        self,
        sql: str,
        parameters: Sequence[object] = (),
        *,
        arrays: Mapping[str, Columns] | None = None,
        deadline_seconds: float | None = None,
    ) -> dict[str, NDArray[Any]]:
        """Run one statement and give its columns.

        ``arrays`` are further tables of numpy columns by name. Nulls come as NaN in numbers (whole ones become
        floats), as None among objects, as NaT in times. Raises ``TooMuch``, ``TooLong``, ``Unreadable``, ``Failed``.
        """
        with self._connection() as connection, self._failures(connection, deadline_seconds):
            for name, columns in (arrays or {}).items():
                connection.register(name, dict(columns))
            try:
                answer = connection.execute(sql, list(parameters)).fetchnumpy()
            finally:
                for name in arrays or ():
                    connection.unregister(name)
        return {name: filled(column) for name, column in answer.items()}

    def execute(
        self,
        sql: str,
        parameters: Sequence[object] = (),
        *,
        arrays: Mapping[str, Columns] | None = None,
        lists: Mapping[str, list[str | None]] | None = None,
    ) -> None:
        """Run one statement that gives nothing; ``lists`` are its variables."""
        with self._connection() as connection, self._failures(connection, None):
            try:
                for name, columns in (arrays or {}).items():
                    connection.register(name, dict(columns))
                for name, values in (lists or {}).items():
                    connection.execute(f"SET VARIABLE {name} = ?::VARCHAR[]", [values])
                connection.execute(sql, list(parameters))
            finally:
                for name in arrays or ():
                    connection.unregister(name)
                for name in lists or ():
                    connection.execute(f"RESET VARIABLE {name}")

    def close(self) -> None:
        """Let go of memory and files."""
        self._deadlines.close()
        with self._lending:
            for connection in self._idle:
                connection.close()
            self._idle.clear()
        self._root.close()

    @contextmanager
    def _connection(self) -> Iterator[DuckDBPyConnection]:
        with self._lending:
            connection = self._idle.pop() if self._idle else self._root.cursor()
        try:
            yield connection
        finally:
            with self._lending:
                self._idle.append(connection)

    @contextmanager
    def _failures(self, connection: DuckDBPyConnection, deadline_seconds: float | None) -> Iterator[None]:
        errors = self._errors
        try:
            with self._deadlines.interrupting(connection, deadline_seconds):
                yield
        except errors.OutOfMemoryException as error:
            raise TooMuch(
                "history: the question needs more memory than history.query_memory_bytes allows; ask for a shorter "
                "range or less detail"
            ) from error
        except errors.InterruptException as error:
            raise TooLong(
                f"history: no answer within {deadline_seconds:g} s; ask for a shorter range or less detail"
                if deadline_seconds is not None
                else "history: the question was given up"
            ) from error
        except (
            errors.IOException,
            errors.InvalidInputException,
            errors.SerializationException,
            errors.InternalException,
            errors.FatalException,
            errors.ConversionException,
            errors.OutOfRangeException,
            RuntimeError,
        ) as error:
            raise Unreadable(f"history: {str(error).splitlines()[0][:300]}") from error
        except errors.Error as error:
            raise Failed(f"history: {str(error).splitlines()[0][:300]}") from error


def filled(column: NDArray[Any]) -> NDArray[Any]:
    """Put NaN, None or NaT where a column has nulls."""
    if not isinstance(column, np.ma.MaskedArray):
        return column
    if column.dtype.kind == "f":
        return column.filled(np.nan)
    if column.dtype.kind in "iub":
        return np.where(column.mask, np.nan, column.data)
    if column.dtype.kind in "mM":
        return np.where(column.mask, np.array("NaT", column.dtype), column.data)
    plain = column.data.copy()
    plain[column.mask] = None
    return plain


def quoted(text: str) -> str:
    """Write a text as SQL does."""
    return "'" + text.replace("'", "''") + "'"


def named(text: str) -> str:
    """Write a column's name as SQL does."""
    return '"' + text.replace('"', '""') + '"'
