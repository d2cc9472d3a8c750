"""Every database that the records may live in."""

from support.records import backend, engine, migrated_location, migrated_sqlite, postgresql, records_location

__all__ = ["backend", "engine", "migrated_location", "migrated_sqlite", "postgresql", "records_location"]
