"""Existing OpenID Connect accounts keep their own name as a Linux name; new accounts do not get it."""

from __future__ import annotations

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Store the Linux names that were implicit so far."""
    op.execute(
        "INSERT INTO linux_names (linux_name, account_id) SELECT name, id FROM accounts WHERE source = 'oidc' "
        "AND NOT EXISTS (SELECT 1 FROM linux_names AS taken WHERE taken.linux_name = accounts.name)"
    )
