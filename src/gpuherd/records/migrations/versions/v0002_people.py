"""People, their keys, the audit log, and bookings."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from gpuherd.model.errors import Misconfigured

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_COUNTED = sa.BigInteger().with_variant(sa.Integer, "sqlite")

# Those that hold a device lie apart, so the first that ends later is the only one that can be in the way: one step in
# the index, however many there are.
_SQLITE_TRIGGERS = (
    """
    CREATE TRIGGER booking_devices_free_insert BEFORE INSERT ON booking_devices WHEN NEW.holds
    BEGIN
        SELECT RAISE(ABORT, 'booking_conflict') FROM (
            SELECT starts_at FROM booking_devices
            WHERE node_id = NEW.node_id AND uuid = NEW.uuid AND holds AND booking_id <> NEW.booking_id
                AND ends_at > NEW.starts_at
            ORDER BY ends_at LIMIT 1
        ) WHERE starts_at < NEW.ends_at;
    END
    """,
    """
    CREATE TRIGGER booking_devices_free_update BEFORE UPDATE ON booking_devices WHEN NEW.holds
    BEGIN
        SELECT RAISE(ABORT, 'booking_conflict') FROM (
            SELECT starts_at FROM booking_devices
            WHERE node_id = NEW.node_id AND uuid = NEW.uuid AND holds AND rowid <> OLD.rowid
                AND ends_at > NEW.starts_at
            ORDER BY ends_at LIMIT 1
        ) WHERE starts_at < NEW.ends_at;
    END
    """,
    """
    CREATE TRIGGER audit_unchanged BEFORE UPDATE ON audit
    WHEN NEW.peer IS NOT NULL OR NEW.id IS NOT OLD.id OR NEW.at IS NOT OLD.at
        OR NEW.account_id IS NOT OLD.account_id OR NEW.label IS NOT OLD.label OR NEW.action IS NOT OLD.action
        OR NEW.subject IS NOT OLD.subject OR NEW.detail IS NOT OLD.detail OR OLD.account_id IS NULL
        OR EXISTS (SELECT 1 FROM accounts WHERE id = OLD.account_id)
    BEGIN
        SELECT RAISE(ABORT, 'audit_append_only');
    END
    """,
    """
    CREATE TRIGGER audit_kept BEFORE DELETE ON audit WHEN OLD.at >= (SELECT keep_from FROM audit_retention)
    BEGIN
        SELECT RAISE(ABORT, 'audit_append_only');
    END
    """,
    """
    CREATE TRIGGER audit_retention_a_day BEFORE UPDATE ON audit_retention
    WHEN NEW.keep_from > strftime('%s', 'now') - 86400
    BEGIN
        SELECT RAISE(ABORT, 'audit_append_only');
    END
    """,
    """
    CREATE TRIGGER audit_retention_one_row BEFORE INSERT ON audit_retention
    BEGIN
        SELECT RAISE(ABORT, 'audit_append_only');
    END
    """,
    """
    CREATE TRIGGER audit_retention_stays BEFORE DELETE ON audit_retention
    BEGIN
        SELECT RAISE(ABORT, 'audit_append_only');
    END
    """,
)

_POSTGRESQL_TRIGGERS = (
    """
    CREATE FUNCTION gpuherd_audit_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        RAISE EXCEPTION 'audit_append_only' USING ERRCODE = 'integrity_constraint_violation';
    END $$
    """,
    """
    CREATE FUNCTION gpuherd_audit_unchanged() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF NEW.peer IS NOT NULL OR OLD.account_id IS NULL
            OR (NEW.id, NEW.at, NEW.account_id, NEW.label, NEW.action, NEW.subject, NEW.detail)
                IS DISTINCT FROM (OLD.id, OLD.at, OLD.account_id, OLD.label, OLD.action, OLD.subject, OLD.detail)
            OR EXISTS (SELECT 1 FROM accounts WHERE id = OLD.account_id)
        THEN
            RAISE EXCEPTION 'audit_append_only' USING ERRCODE = 'integrity_constraint_violation';
        END IF;
        RETURN NEW;
    END $$
    """,
    """
    CREATE FUNCTION gpuherd_audit_kept() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF OLD.at >= (SELECT keep_from FROM audit_retention) THEN
            RAISE EXCEPTION 'audit_append_only' USING ERRCODE = 'integrity_constraint_violation';
        END IF;
        RETURN OLD;
    END $$
    """,
    """
    CREATE TRIGGER audit_unchanged BEFORE UPDATE ON audit
    FOR EACH ROW EXECUTE FUNCTION gpuherd_audit_unchanged()
    """,
    """
    CREATE TRIGGER audit_kept BEFORE DELETE ON audit
    FOR EACH ROW EXECUTE FUNCTION gpuherd_audit_kept()
    """,
    """
    CREATE TRIGGER audit_not_emptied BEFORE TRUNCATE ON audit
    FOR EACH STATEMENT EXECUTE FUNCTION gpuherd_audit_append_only()
    """,
    """
    CREATE TRIGGER audit_retention_a_day BEFORE UPDATE ON audit_retention
    FOR EACH ROW WHEN (NEW.keep_from > extract(epoch FROM now()) - 86400)
    EXECUTE FUNCTION gpuherd_audit_append_only()
    """,
    """
    CREATE TRIGGER audit_retention_one_row BEFORE INSERT OR DELETE OR TRUNCATE ON audit_retention
    FOR EACH STATEMENT EXECUTE FUNCTION gpuherd_audit_append_only()
    """,
)


def _revision_table(name: str) -> None:
    table = op.create_table(
        name,
        sa.Column("id", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("id", name=f"pk_{name}"),
    )
    op.bulk_insert(table, [{"id": 1, "number": 0}])


def _belonging_to_account(name: str, *columns: sa.Column[object]) -> None:
    """Make a table of keys that go with their account."""
    op.create_table(
        name,
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("account_id", sa.String(32), nullable=False),
        *columns,
        sa.PrimaryKeyConstraint("id", name=f"pk_{name}"),
        sa.ForeignKeyConstraint(
            ["account_id"], ["accounts.id"], name=f"fk_{name}_account_id", ondelete="CASCADE"
        ),
        sa.UniqueConstraint("digest", name=f"uq_{name}_digest"),
    )
    op.create_index(f"ix_{name}_account_id", name, ["account_id"])


def _make_people() -> None:
    _revision_table("people_revision")
    op.create_table(
        "accounts",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("name", sa.String(128), nullable=False),
        sa.Column("name_key", sa.String(512), nullable=False),
        sa.Column("display_name", sa.String(128), nullable=False),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("source", sa.String(16), nullable=False),
        sa.Column("subject", sa.String(512)),
        sa.Column("password_hash", sa.String(512)),
        sa.Column("is_disabled", sa.Boolean, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("last_login_at", sa.Double),
        sa.PrimaryKeyConstraint("id", name="pk_accounts"),
        sa.UniqueConstraint("name_key", name="uq_accounts_name_key"),
        sa.UniqueConstraint("source", "subject", name="uq_accounts_source"),
    )
    op.create_table(
        "memberships",
        sa.Column("account_id", sa.String(32), nullable=False),
        sa.Column("group_name", sa.String(128), nullable=False),
        sa.PrimaryKeyConstraint("account_id", "group_name", name="pk_memberships"),
        sa.ForeignKeyConstraint(
            ["account_id"], ["accounts.id"], name="fk_memberships_account_id", ondelete="CASCADE"
        ),
    )
    op.create_table(
        "linux_names",
        sa.Column("linux_name", sa.String(128), nullable=False),
        sa.Column("account_id", sa.String(32), nullable=False),
        sa.PrimaryKeyConstraint("linux_name", name="pk_linux_names"),
        sa.ForeignKeyConstraint(
            ["account_id"], ["accounts.id"], name="fk_linux_names_account_id", ondelete="CASCADE"
        ),
    )
    op.create_index("ix_linux_names_account_id", "linux_names", ["account_id"])


def _make_keys() -> None:
    _belonging_to_account(
        "login_sessions",
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("expires_at", sa.Double, nullable=False),
        sa.Column("seen_at", sa.Double, nullable=False),
        sa.Column("peer", sa.String(128), nullable=False),
        sa.Column("agent", sa.String(512), nullable=False),
    )
    _belonging_to_account(
        "api_tokens",
        sa.Column("title", sa.String(128), nullable=False),
        sa.Column("scopes", sa.String(64), nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("expires_at", sa.Double, nullable=False),
        sa.Column("seen_at", sa.Double),
    )
    _belonging_to_account(
        "feeds",
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("node_id", sa.String(96)),
        sa.Column("uuid", sa.String(96)),
        sa.Column("created_at", sa.Double, nullable=False),
    )
    op.create_table(
        "setup_codes",
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("expires_at", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("digest", name="pk_setup_codes"),
    )
    op.create_table(
        "secrets",
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("value", sa.LargeBinary(64), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_secrets"),
    )


def _make_audit() -> None:
    op.create_table(
        "audit",
        sa.Column("id", _COUNTED, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("account_id", sa.String(32)),
        sa.Column("label", sa.String(128)),
        sa.Column("peer", sa.String(128)),
        sa.Column("action", sa.String(64), nullable=False),
        sa.Column("subject", sa.String(256), nullable=False),
        sa.Column("detail", sa.String(1024), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_audit"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_audit_at", "audit", ["at"])
    op.create_index("ix_audit_account_id", "audit", ["account_id", "id"])
    op.create_index("ix_audit_action", "audit", ["action", "id"])
    op.create_index("ix_audit_subject", "audit", ["subject", "id"])
    retention = op.create_table(
        "audit_retention",
        sa.Column("id", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("keep_from", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_audit_retention"),
    )
    op.bulk_insert(retention, [{"id": 1, "keep_from": 0.0}])


def _make_bookings() -> None:
    _revision_table("booking_revision")
    op.create_table(
        "bookings",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("title", sa.String(256), nullable=False),
        sa.Column("comment", sa.String(4096), nullable=False),
        sa.Column("owner_id", sa.String(32)),
        sa.Column("owner_name", sa.String(128), nullable=False),
        sa.Column("group_name", sa.String(128)),
        sa.Column("starts_at", sa.BigInteger, nullable=False),
        sa.Column("ends_at", sa.BigInteger, nullable=False),
        sa.Column("zone", sa.String(64), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("holds", sa.Boolean, nullable=False),
        sa.Column("series_id", sa.Integer),
        sa.Column("released_from", sa.BigInteger),
        sa.Column("origin", sa.String(16), nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("changed_at", sa.Double, nullable=False),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_bookings"),
        sa.ForeignKeyConstraint(
            ["owner_id"], ["accounts.id"], name="fk_bookings_owner_id", ondelete="SET NULL"
        ),
        sa.CheckConstraint(
            "0 <= starts_at AND starts_at < ends_at AND ends_at <= 253402300799",
            name=op.f("ck_bookings_times"),
        ),
        sa.CheckConstraint(
            "state IN ('active', 'pending', 'cancelled', 'refused')", name=op.f("ck_bookings_state")
        ),
        sa.CheckConstraint("holds = (state IN ('active', 'pending'))", name=op.f("ck_bookings_holds")),
        sa.UniqueConstraint("id", "starts_at", "ends_at", "holds", name="uq_bookings_held"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_bookings_ends_at", "bookings", ["ends_at", "starts_at"])
    op.create_index("ix_bookings_owner_id", "bookings", ["owner_id", "ends_at"])
    op.create_index("ix_bookings_group_name", "bookings", ["group_name", "ends_at"])
    op.create_index("ix_bookings_revision", "bookings", ["revision"])
    op.create_index("ix_bookings_series_id", "bookings", ["series_id"])
    op.create_table(
        "booking_devices",
        sa.Column("booking_id", sa.Integer, nullable=False),
        sa.Column("node_id", sa.String(96), nullable=False),
        sa.Column("uuid", sa.String(96), nullable=False),
        sa.Column("starts_at", sa.BigInteger, nullable=False),
        sa.Column("ends_at", sa.BigInteger, nullable=False),
        sa.Column("holds", sa.Boolean, nullable=False),
        sa.PrimaryKeyConstraint("booking_id", "node_id", "uuid", name="pk_booking_devices"),
        sa.ForeignKeyConstraint(
            ["booking_id", "starts_at", "ends_at", "holds"],
            ["bookings.id", "bookings.starts_at", "bookings.ends_at", "bookings.holds"],
            name="fk_booking_devices_booking_id",
            onupdate="CASCADE",
            ondelete="CASCADE",
        ),
    )
    op.create_index("ix_booking_devices_device", "booking_devices", ["node_id", "uuid", "ends_at"])


def _exclude_overlaps(connection: sa.Connection) -> None:
    """Let PostgreSQL refuse overlaps. Names beside ranges in one GiST index need the extension ``btree_gist``."""
    if not connection.execute(sa.text("SELECT 1 FROM pg_extension WHERE extname = 'btree_gist'")).first():
        try:
            op.execute("CREATE EXTENSION btree_gist")
        except sa.exc.DBAPIError as error:
            reason = str(error.orig).strip().splitlines()[0]
            raise Misconfigured(
                "hub.records_url: PostgreSQL's extension btree_gist, which prevents overlapping bookings, "
                f"cannot be created ({reason}); install PostgreSQL's contrib package if it is missing, and "
                "run in this database as its owner: CREATE EXTENSION btree_gist"
            ) from error
    op.execute(
        "ALTER TABLE booking_devices ADD CONSTRAINT ex_booking_devices_overlap EXCLUDE USING gist "
        "(node_id WITH =, uuid WITH =, int8range(starts_at, ends_at) WITH &&) WHERE (holds)"
    )


def upgrade() -> None:
    """Make the tables and what keeps them true."""
    connection = op.get_bind()
    _make_people()
    _make_keys()
    _make_audit()
    _make_bookings()
    if connection.dialect.name == "postgresql":
        _exclude_overlaps(connection)
    for statement in _POSTGRESQL_TRIGGERS if connection.dialect.name == "postgresql" else _SQLITE_TRIGGERS:
        op.execute(statement)
