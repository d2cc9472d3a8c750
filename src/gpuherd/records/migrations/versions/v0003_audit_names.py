"""Linux names of audit entries, in a table of their own so that they can be erased."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_COUNTED = sa.BigInteger().with_variant(sa.Integer, "sqlite")

_SQLITE_TRIGGERS = (
    """
    CREATE TRIGGER audit_names_unchanged BEFORE UPDATE ON audit_names
    BEGIN
        SELECT RAISE(ABORT, 'audit_append_only');
    END
    """,
    """
    CREATE TRIGGER audit_names_kept BEFORE DELETE ON audit_names
    WHEN EXISTS (SELECT 1 FROM audit WHERE id = OLD.audit_id) AND (
        EXISTS (SELECT 1 FROM linux_names WHERE linux_name = OLD.linux_name)
        OR EXISTS (SELECT 1 FROM accounts WHERE name = OLD.linux_name)
    )
    BEGIN
        SELECT RAISE(ABORT, 'audit_append_only');
    END
    """,
)

_POSTGRESQL_TRIGGERS = (
    """
    CREATE FUNCTION gpuherd_audit_name_kept() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF EXISTS (SELECT 1 FROM audit WHERE id = OLD.audit_id) AND (
            EXISTS (SELECT 1 FROM linux_names WHERE linux_name = OLD.linux_name)
            OR EXISTS (SELECT 1 FROM accounts WHERE name = OLD.linux_name)
        ) THEN
            RAISE EXCEPTION 'audit_append_only' USING ERRCODE = 'integrity_constraint_violation';
        END IF;
        RETURN OLD;
    END $$
    """,
    """
    CREATE TRIGGER audit_names_unchanged BEFORE UPDATE OR TRUNCATE ON audit_names
    FOR EACH STATEMENT EXECUTE FUNCTION gpuherd_audit_append_only()
    """,
    """
    CREATE TRIGGER audit_names_kept BEFORE DELETE ON audit_names
    FOR EACH ROW EXECUTE FUNCTION gpuherd_audit_name_kept()
    """,
)


def upgrade() -> None:
    """Create the table and its triggers."""
    op.create_table(
        "audit_names",
        sa.Column("audit_id", _COUNTED, nullable=False),
        sa.Column("linux_name", sa.String(128), nullable=False),
        sa.Column("is_given", sa.Boolean, nullable=False),
        sa.PrimaryKeyConstraint("audit_id", "linux_name", name="pk_audit_names"),
        sa.ForeignKeyConstraint(
            ["audit_id"], ["audit.id"], name="fk_audit_names_audit_id", ondelete="CASCADE"
        ),
    )
    op.create_index("ix_audit_names_linux_name", "audit_names", ["linux_name"])
    postgresql = op.get_bind().dialect.name == "postgresql"
    for statement in _POSTGRESQL_TRIGGERS if postgresql else _SQLITE_TRIGGERS:
        op.execute(statement)
