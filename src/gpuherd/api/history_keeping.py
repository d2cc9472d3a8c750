"""From what was gathered to the journal, and what to do when there was no room."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping

from msgspec import structs

from gpuherd.fleet.intake import Intake
from gpuherd.fleet.taken import Gathered
from gpuherd.history.batch import Batch
from gpuherd.history.historian import Historian, HistoryHealth
from gpuherd.model.errors import Failed
from gpuherd.model.text import clip
from gpuherd.records.last_reports import LastReport

__all__ = ["HistoryKeeping"]

log = logging.getLogger(__name__)

ASKED_AT_ONCE = 40
"""Nodes asked to send again with each write: some hundred a second. Asking all at once would overload the hub again."""


class HistoryKeeping:
    """Moves samples from the intake to the historian. A batch that cannot be written waits here until it can.

    ``gather`` and ``settle`` belong to the event loop, ``write``, ``cap`` and ``forget`` to the writer's thread; never
    both at the same time.
    """

    def __init__(
        self,
        intake: Intake,
        historian: Historian,
        *,
        take_again: Callable[[str, Mapping[str, int]], bool],
        send_again: Callable[[str], None],
        note_lost: Callable[[str, int], None] = lambda *_: None,
    ) -> None:
        """``take_again(node, kept_runs)``: its later frames count as not taken. ``send_again``: ask for them.

        ``note_lost(node, samples)``: it has no agent that could send these again.
        """
        self._intake = intake
        self._historian = historian
        self._take_again = take_again
        self._send_again = send_again
        self._note_lost = note_lost
        self._gathered: Gathered | None = None
        self._batch: Batch | None = None
        self._sent_again_samples = self._lost_samples = 0
        self._mistake: str | None = None
        self._since = math.inf
        """Monotonic time at which the first of what is being written arrived."""

    def gather(self) -> bool:
        """Take what came, unless something still waits; tell whether there is anything to write."""
        if self._gathered is None and self._batch is None:
            since = self._intake.waiting_since
            self._gathered = self._intake.gather()
            if self._gathered is not None:
                self._since = since
        return self._gathered is not None or self._batch is not None

    def write(self) -> set[str]:
        """Write down what waits; give the nodes of which something is newly kept: none if there is no room."""
        try:
            if self._batch is None and self._gathered is not None:
                # Counted once: from here on it is the batch that waits.
                self._batch, self._gathered = self._intake.batch(self._gathered), None
            if self._batch is None:
                return set()
            self._historian.append(self._batch)
        except Failed as failed:
            log.debug("history cannot be written: %s", failed)  # the historian's health tells it
            return set()
        except Exception as error:
            # A mistake of ours: nothing is acknowledged, and last states go on.
            if self._mistake is None:
                log.exception("cannot write history; retrying")
            self._mistake = clip(f"{type(error).__name__}: {error}", 400)
            return set()
        self._mistake = None
        kept = {mark.node_id for mark in self._batch.marks}
        self._batch, self._since = None, math.inf
        return kept

    def lag_seconds(self, monotonic: float) -> float:
        """Return how long the oldest unwritten sample has waited."""
        since = min(self._since, self._intake.waiting_since)
        return 0.0 if math.isinf(since) else max(0.0, monotonic - since)

    @property
    def is_failing(self) -> bool:
        """Whether nothing can be written; the history's health says why."""
        return self._mistake is not None or self._historian.journal_health().state == "failing"

    def cap(self, report: LastReport) -> LastReport:
        """Give a last state that claims no more of its node's frames than are written down."""
        runs = self._historian.marks.cap(report.node_id, report.runs)
        return report if runs == report.runs else structs.replace(report, runs=runs)

    def runs(self, node_id: str) -> dict[str, int]:
        """Give the highest number that is written down of each run of a node."""
        return self._historian.marks.runs(node_id)

    def forget(self, node_id: str) -> None:
        """Forget which frames of a removed node are kept."""
        self._historian.forget(node_id)
        self._intake.forget(node_id)

    def settle(self) -> None:
        """After everything is written, gather again if that had stopped, and ask some nodes for what was missed."""
        is_waiting = self._batch is not None or self._gathered is not None or self._intake.holds_of_closed
        if is_waiting or not self._intake.has_given_up:
            return
        for node_id, samples in self._intake.reopen(ASKED_AT_ONCE).items():
            if self._take_again(node_id, self.runs(node_id)):
                self._sent_again_samples += samples
                self._send_again(node_id)
            elif samples:
                self._lost_samples += samples
                self._note_lost(node_id, samples)

    def health(self) -> HistoryHealth:
        """Tell how remembering is doing."""
        journal = self._historian.journal_health()
        if self._mistake is not None:
            journal = structs.replace(journal, state="failing", last_error=self._mistake)
        return HistoryHealth(
            journal=journal,
            sinks=self._historian.sink_health(),
            waiting_bytes=self._intake.waiting_bytes,
            is_closed=self._intake.is_closed,
            sent_again_samples=self._sent_again_samples,
            lost_samples=self._lost_samples,
            too_old_samples=self._intake.too_old_samples,
            uncounted_samples=self._intake.uncounted_samples,
        )
