"""GPUs that nodes have reported, and faults that outlast the reports about them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "known_devices",
        sa.Column("node_id", sa.String(96), nullable=False),
        sa.Column("uuid", sa.String(96), nullable=False),
        sa.Column("gpu_index", sa.Integer, nullable=False),
        sa.Column("name", sa.String(128), nullable=False),
        sa.Column("vendor", sa.String(128), nullable=False),
        sa.Column("memory_total_bytes", sa.BigInteger, nullable=True),
        sa.Column("serial", sa.String(128), nullable=True),
        sa.Column("slot", sa.String(128), nullable=True),
        sa.Column("missing_since", sa.Double, nullable=True),
        sa.PrimaryKeyConstraint("node_id", "uuid", name="pk_known_devices"),
    )
    op.create_table(
        "device_faults",
        sa.Column("node_id", sa.String(96), nullable=False),
        sa.Column("uuid", sa.String(96), nullable=False),
        sa.Column("code", sa.String(32), nullable=False),
        sa.Column("message", sa.String(512), nullable=False),
        sa.Column("since", sa.Double, nullable=False),
        sa.Column("boot_id", sa.String(96), nullable=True),
        sa.Column("driver_version", sa.String(128), nullable=True),
        sa.Column("energy_joules", sa.Double, nullable=True),
        sa.Column("acknowledged_at", sa.Double, nullable=True),
        sa.Column("acknowledged_count", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("node_id", "uuid", "code", name="pk_device_faults"),
    )
