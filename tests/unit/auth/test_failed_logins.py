"""A flood of failed logins does not fill the audit log."""

from __future__ import annotations

from gpuherd.auth.failed_logins import FailedLogins


def test_few_are_all_written_and_many_are_summed_up() -> None:
    log = FailedLogins(limit=2, window_seconds=60)
    assert [log.take(float(second)) for second in range(5)] == ["", "", None, None, None]
    assert log.take(100.0) == "and 3 before it that are not listed"
    assert log.take(101.0) == ""
