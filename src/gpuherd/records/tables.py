"""The tables as they are now. Migrations lead here; a test compares the two.

What only one of the databases can say (the exclusion of overlaps, the triggers) stands in the migration alone.
Times are UTC epoch seconds.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Double,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    UniqueConstraint,
)

from gpuherd.records.texts import KeptText

__all__ = [
    "COMMENT_LENGTH",
    "TITLE_LENGTH",
    "accounts",
    "api_tokens",
    "audit",
    "audit_names",
    "audit_retention",
    "booking_devices",
    "booking_keys",
    "booking_revision",
    "bookings",
    "device_faults",
    "feeds",
    "hub_leases",
    "join_tokens",
    "known_devices",
    "linux_names",
    "login_sessions",
    "memberships",
    "metadata",
    "node_credentials",
    "node_revision",
    "nodes",
    "people_revision",
    "secrets",
    "setup_codes",
]

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "ix": "ix_%(column_0_label)s",
        "uq": "uq_%(table_name)s_%(column_0_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
    }
)

DIGEST = KeptText(64)
"""SHA-256 in hex. The secret itself is nowhere."""
ACCOUNT_ID = KeptText(32)
IDENTIFIER = KeptText(96)
TITLE_LENGTH = 256
COMMENT_LENGTH = 4096
COUNTED = BigInteger().with_variant(Integer, "sqlite")
"""SQLite counts only its own INTEGER by itself; that is of 64 bits, too."""


def _account_id() -> Column[str]:
    return Column(
        "account_id", ACCOUNT_ID, ForeignKey("accounts.id", ondelete="CASCADE"), nullable=False, index=True
    )


nodes = Table(
    "nodes",
    metadata,
    Column("id", KeptText(64), primary_key=True),
    Column("name", KeptText(128), nullable=False),
    Column("enrolled_at", Double, nullable=False),
)
"""Every enrolled node."""

node_credentials = Table(
    "node_credentials",
    metadata,
    Column("digest", DIGEST, primary_key=True),
    Column("node_id", KeptText(64), ForeignKey("nodes.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("created_at", Double, nullable=False),
)

join_tokens = Table(
    "join_tokens",
    metadata,
    Column("digest", DIGEST, primary_key=True),
    Column("created_at", Double, nullable=False),
    Column("expires_at", Double, nullable=False),
    Column("uses_left", Integer, nullable=False),
)

known_devices = Table(
    "known_devices",
    metadata,
    Column("node_id", IDENTIFIER, primary_key=True),
    Column("uuid", IDENTIFIER, primary_key=True),
    Column("gpu_index", Integer, nullable=False),
    Column("name", KeptText(128), nullable=False),
    Column("vendor", KeptText(128), nullable=False),
    Column("memory_total_bytes", BigInteger),
    Column("serial", KeptText(128)),
    Column("slot", KeptText(128)),
    Column("missing_since", Double),
)
"""Every whole GPU that a node, enrolled or not, has reported and no admin has forgotten."""

device_faults = Table(
    "device_faults",
    metadata,
    Column("node_id", IDENTIFIER, primary_key=True),
    Column("uuid", IDENTIFIER, primary_key=True),
    Column("code", KeptText(32), primary_key=True),
    Column("message", KeptText(512), nullable=False),
    Column("since", Double, nullable=False),
    Column("boot_id", IDENTIFIER),
    Column("driver_version", KeptText(128)),
    Column("energy_joules", Double),
    Column("acknowledged_at", Double),
    Column("acknowledged_count", BigInteger, nullable=False),
)
"""Faults whose cause is not gone, and what was acknowledged of them."""

hub_leases = Table(
    "hub_leases",
    metadata,
    Column("id", KeptText(32), primary_key=True),
    Column("host", KeptText(256), nullable=False),
    Column("pid", Integer, nullable=False),
    Column("renewed_at", Double, nullable=False),
)
"""Leases of the hubs that run on these records, see ``leases.py``."""

node_revision = Table(
    "node_revision",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("number", Integer, nullable=False),
)
"""One row, counted up with every change of nodes or credentials, so that a running hub sees changes cheaply."""

people_revision = Table(
    "people_revision",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("number", Integer, nullable=False),
)
"""As ``node_revision``: counted up when what someone may do changes, or a key is ended."""

accounts = Table(
    "accounts",
    metadata,
    Column("id", ACCOUNT_ID, primary_key=True),
    Column("name", KeptText(128), nullable=False),
    Column("name_key", KeptText(512), nullable=False),
    Column("display_name", KeptText(128), nullable=False),
    Column("role", KeptText(16), nullable=False),
    Column("source", KeptText(16), nullable=False),
    Column("subject", KeptText(512)),
    Column("password_hash", KeptText(512)),
    Column("is_disabled", Boolean(create_constraint=False), nullable=False),
    Column("created_at", Double, nullable=False),
    Column("last_login_at", Double),
    UniqueConstraint("name_key"),
    UniqueConstraint("source", "subject"),
)
"""``name_key`` is the name as it is compared; ``subject`` is who it is to the one that vouches for it."""

memberships = Table(
    "memberships",
    metadata,
    Column("account_id", ACCOUNT_ID, ForeignKey("accounts.id", ondelete="CASCADE"), primary_key=True),
    Column("group_name", KeptText(128), primary_key=True),
)
"""A group is there as long as it has a member."""

linux_names = Table(
    "linux_names",
    metadata,
    Column("linux_name", KeptText(128), primary_key=True),
    _account_id(),
)
"""Users on the nodes that are a person of another name here."""

login_sessions = Table(
    "login_sessions",
    metadata,
    Column("id", KeptText(32), primary_key=True),
    Column("digest", DIGEST, nullable=False),
    _account_id(),
    Column("created_at", Double, nullable=False),
    Column("expires_at", Double, nullable=False),
    Column("seen_at", Double, nullable=False),
    Column("peer", KeptText(128), nullable=False),
    Column("agent", KeptText(512), nullable=False),
    UniqueConstraint("digest"),
)

api_tokens = Table(
    "api_tokens",
    metadata,
    Column("id", KeptText(32), primary_key=True),
    Column("digest", DIGEST, nullable=False),
    _account_id(),
    Column("title", KeptText(128), nullable=False),
    Column("scopes", KeptText(64), nullable=False),
    Column("created_at", Double, nullable=False),
    Column("expires_at", Double, nullable=False),
    Column("seen_at", Double),
    UniqueConstraint("digest"),
)
"""``scopes`` are parted by spaces."""

feeds = Table(
    "feeds",
    metadata,
    Column("id", KeptText(32), primary_key=True),
    Column("digest", DIGEST, nullable=False),
    _account_id(),
    Column("kind", KeptText(16), nullable=False),
    Column("node_id", IDENTIFIER),
    Column("uuid", IDENTIFIER),
    Column("created_at", Double, nullable=False),
    UniqueConstraint("digest"),
)
"""Calendars that are read by a secret address: of an account, or of a device."""

setup_codes = Table(
    "setup_codes",
    metadata,
    Column("digest", DIGEST, primary_key=True),
    Column("expires_at", Double, nullable=False),
)

secrets = Table(
    "secrets",
    metadata,
    Column("name", KeptText(64), primary_key=True),
    Column("value", LargeBinary(64), nullable=False),
)
"""Random keys of this hub, such as the one that pseudonyms are made with."""

audit = Table(
    "audit",
    metadata,
    Column("id", COUNTED, primary_key=True),
    Column("at", Double, nullable=False),
    Column("account_id", ACCOUNT_ID),
    Column("label", KeptText(128)),
    Column("peer", KeptText(128)),
    Column("action", KeptText(64), nullable=False),
    Column("subject", KeptText(256), nullable=False),
    Column("detail", KeptText(1024), nullable=False),
    Index("ix_audit_at", "at"),
    Index("ix_audit_account_id", "account_id", "id"),
    Index("ix_audit_action", "action", "id"),
    Index("ix_audit_subject", "subject", "id"),
    sqlite_autoincrement=True,
)
"""Who did what. ``label`` only where no account did it: an account's name is looked up, so that erasing the account
erases it here, too. Triggers refuse every change but pruning, and forgetting where an erased account came from."""

audit_names = Table(
    "audit_names",
    metadata,
    Column("audit_id", COUNTED, ForeignKey("audit.id", ondelete="CASCADE"), primary_key=True),
    Column("linux_name", KeptText(128), primary_key=True),
    Column("is_given", Boolean(create_constraint=False), nullable=False),
    Index("ix_audit_names_linux_name", "linux_name"),
)
"""Linux names that an entry gave to an account or took from it. They are people's names, so they are stored apart from
the log and deleted with the account. Triggers refuse to change them, or to delete one that an account still has."""

audit_retention = Table(
    "audit_retention",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("keep_from", Double, nullable=False),
)
"""One row. Entries older than ``keep_from`` may be deleted; a trigger keeps it at least a day in the past."""

booking_revision = Table(
    "booking_revision",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("number", Integer, nullable=False),
)
"""As ``node_revision``. Counting it up comes first in every change of bookings and so puts these in a row: revisions
appear in their order, and what was checked still holds when it is written."""

bookings = Table(
    "bookings",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("title", KeptText(TITLE_LENGTH), nullable=False),
    Column("comment", KeptText(COMMENT_LENGTH), nullable=False),
    Column("owner_id", ACCOUNT_ID, ForeignKey("accounts.id", ondelete="SET NULL")),
    Column("owner_name", KeptText(128), nullable=False),
    Column("group_name", KeptText(128)),
    Column("starts_at", BigInteger, nullable=False),
    Column("ends_at", BigInteger, nullable=False),
    Column("zone", KeptText(64), nullable=False),
    Column("state", KeptText(16), nullable=False),
    Column("holds", Boolean(create_constraint=False), nullable=False),
    Column("series_id", Integer),
    Column("released_from", BigInteger),
    Column("origin", KeptText(16), nullable=False),
    Column("created_at", Double, nullable=False),
    Column("changed_at", Double, nullable=False),
    Column("revision", Integer, nullable=False),
    CheckConstraint("0 <= starts_at AND starts_at < ends_at AND ends_at <= 253402300799", name="times"),
    CheckConstraint("state IN ('active', 'pending', 'cancelled', 'refused')", name="state"),
    CheckConstraint("holds = (state IN ('active', 'pending'))", name="holds"),
    UniqueConstraint("id", "starts_at", "ends_at", "holds", name="uq_bookings_held"),
    Index("ix_bookings_ends_at", "ends_at", "starts_at"),
    Index("ix_bookings_owner_id", "owner_id", "ends_at"),
    Index("ix_bookings_group_name", "group_name", "ends_at"),
    Index("ix_bookings_revision", "revision"),
    Index("ix_bookings_series_id", "series_id"),
    sqlite_autoincrement=True,
)
"""``holds``: its devices cannot be had by others."""

booking_devices = Table(
    "booking_devices",
    metadata,
    Column("booking_id", Integer, primary_key=True),
    Column("node_id", IDENTIFIER, primary_key=True),
    Column("uuid", IDENTIFIER, primary_key=True),
    Column("starts_at", BigInteger, nullable=False),
    Column("ends_at", BigInteger, nullable=False),
    Column("holds", Boolean(create_constraint=False), nullable=False),
    ForeignKeyConstraint(
        ["booking_id", "starts_at", "ends_at", "holds"],
        ["bookings.id", "bookings.starts_at", "bookings.ends_at", "bookings.holds"],
        name="fk_booking_devices_booking_id",
        onupdate="CASCADE",
        ondelete="CASCADE",
    ),
    Index("ix_booking_devices_device", "node_id", "uuid", "ends_at"),
)
"""Times and ``holds`` are the booking's, kept equal by the foreign key, so that the database itself can compare those
of one device: an exclusion constraint in PostgreSQL, triggers in SQLite."""

booking_keys = Table(
    "booking_keys",
    metadata,
    Column("account_id", ACCOUNT_ID, ForeignKey("accounts.id", ondelete="CASCADE"), primary_key=True),
    Column("key_digest", DIGEST, primary_key=True),
    Column("request_digest", DIGEST, nullable=False),
    Column("booking_id", Integer, ForeignKey("bookings.id", ondelete="CASCADE"), nullable=False),
    Column("made_at", Double, nullable=False),
    Index("ix_booking_keys_made_at", "made_at"),
)
"""Idempotency keys of the last day, each with the booking (or the first of a series) that its request made."""
