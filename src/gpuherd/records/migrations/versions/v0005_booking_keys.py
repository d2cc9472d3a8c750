"""Idempotency keys of requests that made bookings."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "booking_keys",
        sa.Column("account_id", sa.String(32), nullable=False),
        sa.Column("key_digest", sa.String(64), nullable=False),
        sa.Column("request_digest", sa.String(64), nullable=False),
        sa.Column("booking_id", sa.Integer, nullable=False),
        sa.Column("made_at", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("account_id", "key_digest", name="pk_booking_keys"),
        sa.ForeignKeyConstraint(
            ["account_id"], ["accounts.id"], name="fk_booking_keys_account_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["booking_id"], ["bookings.id"], name="fk_booking_keys_booking_id", ondelete="CASCADE"
        ),
    )
    op.create_index("ix_booking_keys_made_at", "booking_keys", ["made_at"])
