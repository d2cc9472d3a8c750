"""From what was gathered to the journal, and what to do when there was no room."""

from __future__ import annotations

import logging
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
    ) -> None:
        """``take_again`` (node, kept runs): its frames above these count as not taken. ``send_again``: ask for them."""
        self._intake = intake
        self._historian = historian
        self._take_again = take_again
        self._send_again = send_again
        self._gathered: Gathered | None = None
        self._batch: Batch | None = None
        self._sent_again_samples = self._lost_samples = 0
        self._mistake: str | None = None

    def gather(self) -> bool:
        """Take what came, unless something still waits; tell whether there is anything to write."""
        if self._gathered is None and self._batch is None:
            self._gathered = self._intake.gather()
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
            log.debug("nothing can be remembered: %s", failed)  # the historian's health tells it
            return set()
        except Exception as error:
            # A mistake of ours: nothing is acknowledged, and last states go on.
            if self._mistake is None:
                log.exception("history cannot be written")
            self._mistake = clip(f"{type(error).__name__}: {error}", 400)
            return set()
        self._mistake = None
        kept = {mark.node_id for mark in self._batch.marks}
        self._batch = None
        return kept

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
        """After all was written: gather again if that had stopped, and ask for what was given up meanwhile."""
        if not self._intake.has_given_up or self._batch is not None or self._gathered is not None:
            return
        for node_id, samples in self._intake.reopen().items():
            if self._take_again(node_id, self.runs(node_id)):
                self._sent_again_samples += samples
                self._send_again(node_id)
            else:
                self._lost_samples += samples

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
