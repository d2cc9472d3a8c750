"""Nodes, their credentials, and join tokens."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the first tables."""
    op.create_table(
        "nodes",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("name", sa.String(128), nullable=False),
        sa.Column("enrolled_at", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_nodes"),
    )
    op.create_table(
        "node_credentials",
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("node_id", sa.String(64), nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("digest", name="pk_node_credentials"),
        sa.ForeignKeyConstraint(
            ["node_id"], ["nodes.id"], name="fk_node_credentials_node_id", ondelete="CASCADE"
        ),
    )
    op.create_index("ix_node_credentials_node_id", "node_credentials", ["node_id"])
    op.create_table(
        "join_tokens",
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("expires_at", sa.Double, nullable=False),
        sa.Column("uses_left", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("digest", name="pk_join_tokens"),
    )
    revision_table = op.create_table(
        "node_revision",
        sa.Column("id", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_node_revision"),
    )
    op.bulk_insert(revision_table, [{"id": 1, "number": 0}])
