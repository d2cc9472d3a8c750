"""DuckDB within bounds: memory, threads, time, and no files but those of one folder."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gpuherd.history.deadline import within
from gpuherd.history.tables.deadlines import Deadlines
from gpuherd.history.tables.disk import DiskFull
from gpuherd.model.errors import Failed
from gpuherd.model.text import SENTENCE_LENGTH, clean

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["Columns", "Engine", "TooLong", "TooMuch", "Unreadable", "named", "quoted"]

Columns = Mapping[str, NDArray[Any]]

_READ_AHEAD_THREADS = 2
"""As quick as the usual eight, of which each DuckDB would have its own."""
_MOST_WORDS = 20_000
_SPILL_PER_MEMORY = 4
"""How much of what does not fit in memory may be on disk for a while, in multiples of the memory."""


class TooMuch(Failed):
    """A question needs more memory than it may have."""


class TooLong(Failed):
    """A question was not answered in time."""


class Unreadable(Failed):
    """Some file makes no sense."""


class Engine:
    """A DuckDB in memory whose tables are files. From any thread, several at a time."""

    def __init__(self, folder: Path, *, memory_bytes: int, threads: int = 2, name: str = "readers") -> None:
        import duckdb  # noqa: PLC0415 - some 30 MB, and only a hub with history needs them

        self._duckdb = duckdb
        self._folder = folder
        self._name = name
        self._memory_bytes = memory_bytes
        self._threads = threads
        self._lending = threading.Lock()
        self._deadlines = Deadlines()
        self._idle: list[DuckDBPyConnection] = []
        self._lent: dict[int, int] = {}
        self._retired: dict[int, DuckDBPyConnection] = {}
        self._root = self._open(0)
        self.restarts = 0
        """How often it had to be opened anew: an error within DuckDB makes it refuse everything from then on."""

    def _open(self, number: int) -> DuckDBPyConnection:
        # A folder of its own each time: the one before keeps its own until its last question is answered.
        spill = self._folder / "spill" / f"{self._name}-{number}"
        spill.mkdir(mode=0o700, parents=True, exist_ok=True)
        root = self._duckdb.connect(
            ":memory:",
            config={
                "threads": self._threads,
                "memory_limit": f"{self._memory_bytes}B",
                "temp_directory": str(spill),
                "max_temp_directory_size": f"{_SPILL_PER_MEMORY * self._memory_bytes}B",
                "autoinstall_known_extensions": "false",
                "autoload_known_extensions": "false",
                "allow_community_extensions": "false",
                "python_enable_replacements": "false",
            },
        )
        # Twice as quick with many files; names are never used again, so it cannot be outdated.
        root.execute("SET parquet_metadata_cache = true")
        root.execute("SET TimeZone = 'UTC'")
        with suppress(self._duckdb.CatalogException):  # before DuckDB 2 there are none
            root.execute(f"SET async_threads = {_READ_AHEAD_THREADS}")
        root.execute(f"SET allowed_directories = [{quoted(str(self._folder))}]")
        root.execute("SET enable_external_access = false")
        root.execute("SET lock_configuration = true")
        return root

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
        floats), as None among objects, as NaT in times. It is given up after ``deadline_seconds``, or when it is due
        (``history.deadline``). Raises ``TooMuch``, ``TooLong``, ``Unreadable``, ``Failed``.
        """
        deadline_seconds = within(deadline_seconds)
        if deadline_seconds is not None and deadline_seconds <= 0:
            raise TooLong("history: no time left for this query")
        with (
            self._failures(deadline_seconds),
            self._connection() as connection,
            self._deadlines.interrupting(connection, deadline_seconds),
        ):
            for name, columns in (arrays or {}).items():
                connection.register(name, dict(columns))
            answer = connection.execute(sql, list(parameters)).fetchnumpy()
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
        """Run one statement that gives nothing; ``lists`` are its variables, one list of strings each."""
        with self._failures(), self._connection() as connection:
            for name, columns in (arrays or {}).items():
                connection.register(name, dict(columns))
            for name, values in (lists or {}).items():
                _set_list(connection, name, values)
            connection.execute(sql, list(parameters))
            for name in arrays or ():
                connection.unregister(name)
            for name in lists or ():
                connection.execute(f"RESET VARIABLE {name}")
                connection.execute(f"DROP TYPE IF EXISTS {name}_word")

    def renew(self) -> None:
        """Open it anew, without what it remembers of files that are gone. Questions that are being asked go on."""
        self._restart(self.restarts)

    def close(self) -> None:
        """Let go of memory and files; questions that are still being asked keep theirs until they are answered."""
        self._deadlines.close()
        with self._lending:
            for connection in self._idle:
                connection.close()
            self._idle.clear()
            self._retired[self.restarts] = self._root
            self._close_retired()

    @contextmanager
    def _connection(self) -> Iterator[DuckDBPyConnection]:
        with self._lending:
            restarts = self.restarts
            connection = self._idle.pop() if self._idle else self._root.cursor()
            self._lent[restarts] = self._lent.get(restarts, 0) + 1
        is_reusable = False
        try:
            yield connection
            is_reusable = True
        except (self._duckdb.InternalException, self._duckdb.FatalException):
            self._restart(restarts)
            raise
        finally:
            with self._lending:
                self._lent[restarts] -= 1
                # After an error, whatever state it is in, the next question is not to find out.
                if is_reusable and restarts == self.restarts:
                    self._idle.append(connection)
                else:
                    connection.close()
                self._close_retired()

    def _restart(self, restarts: int) -> None:
        with self._lending:
            if restarts != self.restarts:
                return  # another thread met the same error and has done it
            root = self._open(restarts + 1)
            self._retired[restarts] = self._root
            self._root = root
            self.restarts += 1
            for connection in self._idle:
                connection.close()
            self._idle.clear()
            self._close_retired()

    def _close_retired(self) -> None:
        # Not before its last question is answered: to close it would close what was lent of it.
        for number in [each for each in self._retired if not self._lent.get(each)]:
            self._retired.pop(number).close()
            self._lent.pop(number, None)

    @contextmanager
    def _failures(self, deadline_seconds: float | None = None) -> Iterator[None]:
        errors = self._duckdb
        try:
            yield
        except errors.OutOfMemoryException as error:
            raise TooMuch(
                "history: the query needs more memory than history.query_memory_bytes allows; request a "
                "shorter range or less detail"
            ) from error
        except errors.InterruptException as error:
            raise TooLong(
                "history: the query was cancelled"
                if deadline_seconds is None
                else (
                    f"history: no result within {deadline_seconds:g} s; request a shorter range or less "
                    "detail"
                )
            ) from error
        except (errors.ParserException, errors.BinderException, errors.CatalogException) as error:
            raise Failed(f"history: {_sentence(error)}") from error
        except (errors.Error, RuntimeError) as error:
            # Of damaged files, DuckDB says almost anything.
            full = "No space left on device" in str(error) or "max_temp_directory_size" in str(error)
            raise (DiskFull if full else Unreadable)(f"history: {_sentence(error)}") from error


def _set_list(connection: DuckDBPyConnection, name: str, values: list[str | None]) -> None:
    """Make a variable of strings: as numbers with a dictionary, if they are few, which spares copying each of them."""
    if not 0 < len(values) <= _MOST_WORDS or values.count(None) == len(values):
        connection.execute(f"SET VARIABLE {name} = ?::VARCHAR[]", [values])
        return
    connection.register("words", {"word": np.array(values, object), "position": np.arange(len(values))})
    connection.execute(
        f"CREATE TEMP TYPE {name}_word AS ENUM (SELECT DISTINCT word FROM words WHERE word IS NOT NULL)"  # noqa: S608
    )
    connection.execute(
        f"SET VARIABLE {name} = (SELECT list(word::{name}_word ORDER BY position) FROM words)"  # noqa: S608
    )
    connection.unregister("words")


def _sentence(error: Exception) -> str:
    lines = str(error).splitlines()
    return clean(lines[0], SENTENCE_LENGTH) if lines else type(error).__name__


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
