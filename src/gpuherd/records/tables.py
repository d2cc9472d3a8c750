"""The tables as they are now. Migrations lead here; a test compares the two."""

from __future__ import annotations

from sqlalchemy import Column, Double, ForeignKey, Integer, MetaData, String, Table

__all__ = ["join_tokens", "metadata", "node_credentials", "node_revision", "nodes"]

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "ix": "ix_%(column_0_label)s",
    }
)

nodes = Table(
    "nodes",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("name", String(128), nullable=False),
    Column("enrolled_at", Double, nullable=False),
)
"""Every enrolled node; times are UTC epoch seconds."""

node_credentials = Table(
    "node_credentials",
    metadata,
    Column("digest", String(64), primary_key=True),
    Column("node_id", String(64), ForeignKey("nodes.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("created_at", Double, nullable=False),
)
"""SHA-256 of each node's secret, in hex. The secret itself is nowhere."""

join_tokens = Table(
    "join_tokens",
    metadata,
    Column("digest", String(64), primary_key=True),
    Column("created_at", Double, nullable=False),
    Column("expires_at", Double, nullable=False),
    Column("uses_left", Integer, nullable=False),
)
"""SHA-256 of each join token, in hex."""

node_revision = Table(
    "node_revision",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("number", Integer, nullable=False),
)
"""One row, counted up with every change of nodes or credentials, so that a running hub sees changes cheaply."""
