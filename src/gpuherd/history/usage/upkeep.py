# ruff: noqa: S608 - SQL is put together of names in this file only
"""What happens to use as it ages: fewer files, hours instead of slots, pseudonyms instead of names, nothing."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuherd.history.batch import USE_MEASURES
from gpuherd.history.settings import HistorySettings
from gpuherd.history.tables.compaction import crowded, merge
from gpuherd.history.tables.retention import forget
from gpuherd.history.tables.segments import Segment
from gpuherd.history.tables.tables import Part, Tables
from gpuherd.history.usage.rows import COMMANDS, DAY_SECONDS, DAYS, KEY_COLUMNS, USAGE
from gpuherd.history.usage.slots import HOUR_SECONDS

__all__ = ["HOURS_AFTER_SECONDS", "HOURS_LEVEL", "NAMELESS_LEVEL", "Upkeep"]

HOURS_AFTER_SECONDS = 8 * 86_400.0
"""A day that is over for this long is kept in hours."""
MERGED_AFTER_SECONDS = 7_200.0
"""A day that is over for this long is put into one file, and added up."""
MERGED_LEVEL = 100
HOURS_LEVEL = 1_000
NAMELESS_LEVEL = 1_000_000
"""Levels of segments. From the first on their rows are added up by days in a file beside; from the second on they are
hours, and at the last they have pseudonyms."""
CROWD = 8
FORGET_SECONDS = 600.0

_KEYS = ", ".join(f'"{name}"' for name in ("session", *KEY_COLUMNS, "opened_at"))
_SUMS = ", ".join(f"sum({name}) AS {name}" for name in USE_MEASURES)
_NAMELESS = (
    'SELECT * REPLACE (coalesce(other, session) AS session, pseudonym AS "user", NULL AS container, NULL AS job, '
    f"{HOUR_SECONDS} * floor(greatest(opened_at, [day]) / {HOUR_SECONDS}) AS opened_at, "
    f"{HOUR_SECONDS} * floor(first / {HOUR_SECONDS}) AS first, {HOUR_SECONDS} * ceil(last / {HOUR_SECONDS}) AS last) "
    "FROM {rows} LEFT JOIN pseudonyms USING (session)"
)
"""Containers and jobs go too: they often tell whose they were. So would the moment at which a stay began: the same stay
may still have its name on the next day, and other records have such moments."""


class Upkeep:
    """Looks after the files of use; one step at a time, in one thread at a time."""

    def __init__(
        self,
        tables: Tables,
        settings: HistorySettings,
        pseudonym: Callable[[str], str],
        stay_id: Callable[[str], str] | None = None,
    ) -> None:
        """``stay_id`` makes the id of a stay without a name, the same one for ever; or as long as this process runs."""
        self._tables = tables
        self._settings = settings
        self.pseudonym = pseudonym
        self._stay_id = stay_id or partial(_keyed, secrets.token_bytes(32))
        self._forgot_at = -np.inf

    def tend(self, now: float) -> None:
        """Do the one thing that is most due; a few hundred milliseconds for a day of a thousand GPUs."""
        trusted = self._tables.trusted(now)
        if trusted is not None and not 0 <= trusted - self._forgot_at < FORGET_SECONDS:
            self._forgot_at = trusted
            kept_days = dict.fromkeys((USAGE.name, DAYS.name), self._settings.usage_days)
            kept_days[COMMANDS.name] = self._settings.command_line_days
            forget(self._tables, {table: DAY_SECONDS * kept for table, kept in kept_days.items()}, trusted)
        days: dict[tuple[int, bool], list[Segment]] = {}
        for segment in self._tables.segments(USAGE.name):
            days.setdefault((segment.partition, segment.level >= NAMELESS_LEVEL), []).append(segment)
        added_up = {(s.partition, s.level >= NAMELESS_LEVEL) for s in self._tables.segments(DAYS.name)}
        # Merging loses nothing; hours for slots, and pseudonyms, are for good.
        aged_before = -np.inf if trusted is None else trusted - HOURS_AFTER_SECONDS
        nameless_before = (
            -np.inf if trusted is None else trusted - DAY_SECONDS * self._settings.pseudonymise_after_days
        )
        for (day, is_nameless), segments in sorted(days.items()):
            age = now - (day + DAY_SECONDS)
            level = max(segment.level for segment in segments)
            if not is_nameless and day + DAY_SECONDS <= nameless_before:
                return self._replace(segments, HOUR_SECONDS, NAMELESS_LEVEL)
            least = min(segment.level for segment in segments)
            if least < HOURS_LEVEL and day + DAY_SECONDS <= aged_before:
                return self._replace(segments, HOUR_SECONDS, HOURS_LEVEL)
            if least < MERGED_LEVEL and age >= MERGED_AFTER_SECONDS:
                return self._replace(segments, None, MERGED_LEVEL)
            is_added_up = level < MERGED_LEVEL or (day, is_nameless) in added_up
            if len(segments) >= CROWD or not is_added_up:
                return self._replace(segments, None, level)
        for crowd in crowded(self._tables, COMMANDS.name, least=CROWD)[:1]:
            merge(self._tables, crowd)
        return None

    def erase(self, users: Collection[str]) -> None:
        """Make the use of these an unknown user's, also where they have pseudonyms, and forget their command lines."""
        nameless = {self.pseudonym(user) for user in users}
        names = np.array(sorted({*users, *nameless}), object)
        ids: dict[str, str] = {}
        for segment in (*self._tables.segments(USAGE.name), *self._tables.segments(DAYS.name)):
            part = {"rows": Part(segment.table, segments=(segment,))}
            erased = {"erased": {"name": names}}
            found = self._tables.query(
                'SELECT DISTINCT session FROM {rows} WHERE "user" IN (SELECT name FROM erased)',
                part,
                arrays=erased,
            ).columns["session"]
            if not len(found):
                continue
            others = [ids.setdefault(each, secrets.token_hex(16)) for each in found.tolist()]
            replaced = self._tables.write_query(
                segment.table,
                "SELECT * REPLACE (coalesce(other, session) AS session, "
                'if(other IS NULL, "user", NULL) AS "user", if(other IS NULL, container, NULL) AS container, '
                "if(other IS NULL, job, NULL) AS job) FROM {rows} LEFT JOIN erased USING (session)",
                part,
                partition=segment.partition,
                level=segment.level,
                arrays={"erased": {"session": found.astype(object), "other": np.array(others, object)}},
            )
            self._tables.commit(add=[replaced], remove=[segment])
        for segment in self._tables.segments(COMMANDS.name):
            replaced = self._tables.write_query(
                COMMANDS.name,
                'SELECT * FROM {rows} WHERE "user" IS NULL OR "user" NOT IN (SELECT name FROM erased)',
                {"rows": Part(COMMANDS.name, segments=(segment,))},
                partition=segment.partition,
                level=segment.level,
                arrays={"erased": {"name": names}},
            )
            if replaced is not None and replaced.rows == segment.rows:
                self._tables.discard(replaced)
            else:
                self._tables.commit(add=[replaced], remove=[segment])

    def _replace(self, segments: Sequence[Segment], seconds: int | None, level: int) -> None:
        """Make one segment of several: rows of the same stay and slot added up, perhaps in longer slots."""
        day = segments[0].partition
        part = Part(USAGE.name, segments=tuple(segments))
        source, arrays = "SELECT * FROM {rows}", {}
        part_level = max(segment.level for segment in segments)
        if level >= NAMELESS_LEVEL > part_level:
            source, arrays = _NAMELESS.replace("[day]", str(day)), self._pseudonyms(part)
        slot, length = ("slot", "slot_seconds") if seconds is None else (f"slot - slot % {seconds}", seconds)
        added = [
            self._tables.write_query(
                USAGE.name,
                _added_up(source, slot, length),
                {"rows": part},
                partition=day,
                level=level,
                arrays=arrays,
            )
        ]
        removed = list(segments)
        if level >= MERGED_LEVEL:
            # The days' rows of what is not replaced now, because it has pseudonyms already, stay.
            beside = [s for s in self._tables.segments(DAYS.name) if s.partition == day]
            removed += [s for s in beside if (s.level >= NAMELESS_LEVEL) == (part_level >= NAMELESS_LEVEL)]
            added.append(
                self._tables.write_query(
                    DAYS.name,
                    _added_up(source, str(day), DAY_SECONDS),
                    {"rows": part},
                    partition=day,
                    level=level,
                    arrays=arrays,
                )
            )
        self._tables.commit(add=added, remove=removed)

    def _pseudonyms(self, part: Part) -> dict[str, dict[str, NDArray[Any]]]:
        found = self._tables.query('SELECT DISTINCT "user", session FROM {rows}', {"rows": part}).columns
        users = {user: None if user is None else self.pseudonym(user) for user in found["user"]}
        # The id of a stay is made of its user's name: who guesses the name could tell that it was theirs.
        sessions = [self._stay_id(session) for session in found["session"]]
        return {
            "pseudonyms": {
                "session": found["session"].astype(object),
                "pseudonym": np.array([users[user] for user in found["user"]], object),
                "other": np.array(sessions, object),
            }
        }


def _added_up(source: str, slot: str, length: int | str) -> str:
    return (
        f"SELECT {_KEYS}, start AS slot, length AS slot_seconds, min(first) AS first, max(last) AS last, {_SUMS} "
        f"FROM (SELECT *, {slot} AS start, {length} AS length FROM ({source})) GROUP BY {_KEYS}, start, length"
    )


def _keyed(key: bytes, text: str) -> str:
    return hashlib.blake2b(text.encode(), key=key, digest_size=16).hexdigest()
