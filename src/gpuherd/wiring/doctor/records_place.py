"""Records in a database of their own: whether it answers, and which hubs run on it."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy.exc import SQLAlchemyError

from gpuherd.model.errors import Misconfigured
from gpuherd.records.database import records_engine, records_url, revision_in
from gpuherd.records.leases import running_hubs
from gpuherd.records.transactions import READS_ONLY, reason_of
from gpuherd.wiring.doctor.steps import Journal
from gpuherd.wiring.doctor.threads import in_thread
from gpuherd.wiring.doctor.wording import age

__all__ = ["examine_records"]

LOOK_SECONDS = 20.0


async def examine_records(location: str, journal: Journal) -> None:
    """Look at the records, and change nothing there."""
    try:
        url = records_url(location)
        place = url.render_as_string()  # without its password
        fact = await in_thread(lambda: _look(location), LOOK_SECONDS)
    except Misconfigured as error:
        journal.failed("records", "cannot be opened", str(error))
    except TimeoutError:
        journal.failed("records", "no answer", f"the database at {place} does not respond; is the server up?")
    except SQLAlchemyError as error:
        journal.failed(
            "records", "cannot be opened", f"cannot open the database at {place}: {reason_of(error)}"
        )
    else:
        journal.ok("records", f"{place}, {fact}")


def _look(location: str) -> str:
    url = records_url(location)
    new = "empty: its tables are created at the hub's first start"
    if url.get_backend_name() == "sqlite" and not Path(url.database or "").exists():
        return new  # opening it would make it
    engine = records_engine(url)
    try:
        with engine.connect() as connection:
            connection.execution_options(**{READS_ONLY: True})
            if revision_in(connection) is None:
                return new
            hubs = running_hubs(connection)
    finally:
        engine.dispose()
    if not hubs:
        return "no hub is using it"
    running = ", ".join(f"{hub.host} (process {hub.pid}, {age(hub.age_seconds)} ago)" for hub in hubs)
    return f"in use by the hub on {running}"
