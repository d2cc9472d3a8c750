"""Whole reports as a run of numbered frames, so that they go the way of all frames."""

from __future__ import annotations

from gpuherd.fleet.node import Run
from gpuherd.model.processes import ProcessTable
from gpuherd.model.reports import NodeFacts, Report
from gpuherd.wire.codec import encode
from gpuherd.wire.frames import FactsFrame, TableFrame
from gpuherd.wire.reports import sample_to_frame

__all__ = ["ReportRun"]


class ReportRun:
    """Numbers one node's reports. Facts and table that did not change are not taken again."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._facts: NodeFacts | None = None
        self._table: ProcessTable | None = None
        self._facts_revision = 0
        self._table_revision = 0

    @property
    def interval_seconds(self) -> float:
        """When the next report is to be expected."""
        return self._run.hello.interval_seconds

    def take(self, report: Report) -> None:
        """Take a report whose parts line up; ``Refused`` if its content breaks a rule."""
        run = self._run
        if report.facts is not self._facts and report.facts != self._facts:
            self._facts = self._table = None  # should they be refused, the next report brings them again
            self._facts_revision += 1
            facts = FactsFrame(seq=run.received_seq + 1, revision=self._facts_revision, facts=report.facts)
            run.accept(facts, encode(facts))
            self._facts = report.facts
        # The table points into the facts' device list: new facts need it again.
        if report.table is not self._table and report.table != self._table:
            self._table = None
            self._table_revision += 1
            table = TableFrame(
                seq=run.received_seq + 1,
                revision=self._table_revision,
                facts_revision=self._facts_revision,
                table=report.table,
            )
            run.accept(table, encode(table))
            self._table = report.table
        sample = sample_to_frame(
            report.sample,
            seq=run.received_seq + 1,
            facts_revision=self._facts_revision,
            table_revision=self._table_revision,
        )
        run.accept(sample, encode(sample))
