"""Leases of the hubs that run on these records."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "hub_leases",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("host", sa.String(256), nullable=False),
        sa.Column("pid", sa.Integer, nullable=False),
        sa.Column("renewed_at", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_hub_leases"),
    )
