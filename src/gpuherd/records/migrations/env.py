"""Alembic's entry: runs the migrations on the connection it is handed (see ``records/database.py``)."""

from __future__ import annotations

from alembic import context

from gpuherd.records.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
with context.begin_transaction():
    context.run_migrations()
