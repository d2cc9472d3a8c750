"""What holds for all tests."""

from __future__ import annotations

import signal

import pytest
from hypothesis import HealthCheck, settings

from support.order import shuffle
from support.soak import SOAK
from support.tally import Tally, table_of

# A busy machine is slow now and then; that is no error in what is tested. Each run tries other examples.
settings.register_profile(
    "gpuherd", deadline=None, max_examples=50 * SOAK, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("gpuherd")

# Under nohup, or in the background of a script, these are ignored, and so they would be by every command that a test
# starts, to see what it does when Ctrl-C is pressed or its terminal goes away.
for _number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, signal.default_int_handler if _number is signal.SIGINT else signal.SIG_DFL)


_LONGEST_NAME = 80


def pytest_addoption(parser: pytest.Parser) -> None:
    """Offer another order of the tests."""
    parser.addoption(
        "--shuffle", metavar="SEED", help="run files, and the tests in each, in an order made from SEED"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Shuffle before pytest brings together what shares a fixture."""
    seed = config.getoption("--shuffle")
    if seed is not None:
        shuffle(items, str(seed))


def pytest_make_parametrize_id(val: object) -> str | None:
    """Name a test by the beginning of a long text; whole ones would make names of megabytes, sent to and fro."""
    if not isinstance(val, str | bytes) or len(val) <= _LONGEST_NAME:
        return None
    begin = val[:_LONGEST_NAME]
    text = begin if isinstance(begin, str) else begin.decode("latin-1")
    return text.encode("unicode_escape").decode("ascii")


@pytest.fixture
def tally(request: pytest.FixtureRequest) -> Tally:
    """Count what an attack or a fault tried, what held and what was lost; the run ends with a table of all counts."""
    return Tally(request.node.user_properties)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the table of attacks and faults, if any test counted some."""
    reports = [
        report
        for outcome in ("passed", "failed")
        for report in terminalreporter.getreports(outcome)
        if isinstance(report, pytest.TestReport)
    ]
    table = table_of(report.user_properties for report in reports)
    if table:
        terminalreporter.section("attacks and faults")
        for line in table:
            terminalreporter.write_line(line)
