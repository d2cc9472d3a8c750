"""Nodes, credentials and join tokens: the verbs on their tables. Blocking; one transaction each."""

from __future__ import annotations

from msgspec import Struct
from sqlalchemy import Engine, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from gpuherd.model.errors import Refused
from gpuherd.model.people import HUB, Actor
from gpuherd.records.audit import Deed, moment, write_audit
from gpuherd.records.tables import (
    device_faults,
    join_tokens,
    known_devices,
    node_credentials,
    node_revision,
    nodes,
)
from gpuherd.records.transactions import count_change, reading, revision_of, writing

__all__ = ["EnrolledNodes", "JoinTokenRecord", "NodeRecord", "NodeRecords", "token_id"]

_TOKEN_ID_LENGTH = 12


def token_id(digest: str) -> str:
    """Return the id of a join token in lists and in the audit log; it reveals nothing about the token itself."""
    return digest[:_TOKEN_ID_LENGTH]


def _admits(uses: int) -> str:
    return "1 node" if uses == 1 else f"{uses} nodes"


class NodeRecord(Struct, frozen=True, kw_only=True):
    """One enrolled node."""

    id: str
    name: str
    enrolled_at: float


class JoinTokenRecord(Struct, frozen=True, kw_only=True):
    """One join token that still admits nodes. Times in UTC epoch seconds."""

    digest: str
    created_at: float
    expires_at: float
    uses_left: int


class EnrolledNodes(Struct, frozen=True, kw_only=True):
    """Every node and every credential's digest, as of one revision."""

    revision: int
    nodes: tuple[NodeRecord, ...]
    credentials: dict[str, str]
    """Digest to node id."""


class NodeRecords:
    """The nodes' records. Database trouble is ``Failed``; a broken rule is ``Refused``."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def close(self) -> None:
        """Close every connection."""
        self._engine.dispose()

    def revision(self) -> int:
        """Count of changes so far; cheap enough to ask every second."""
        return revision_of(self._engine, node_revision)

    def load(self) -> EnrolledNodes:
        """Read every node and credential."""
        with reading(self._engine) as connection:
            return EnrolledNodes(
                revision=connection.execute(select(node_revision.c.number)).scalar_one(),
                nodes=tuple(
                    NodeRecord(id=row.id, name=row.name, enrolled_at=row.enrolled_at)
                    for row in connection.execute(select(nodes).order_by(nodes.c.id))
                ),
                credentials={
                    row.digest: row.node_id
                    for row in connection.execute(
                        select(node_credentials.c.digest, node_credentials.c.node_id)
                    )
                },
            )

    def node_of(self, credential: str) -> str | None:
        """Give the node that a credential's digest belongs to."""
        with reading(self._engine) as connection:
            found = connection.execute(
                select(node_credentials.c.node_id).where(node_credentials.c.digest == credential)
            ).scalar_one_or_none()
            return None if found is None else str(found)

    def add_token(self, *, digest: str, now: float, expires_at: float, uses: int, by: Actor = HUB) -> None:
        """Keep a join token."""
        with writing(self._engine) as connection:
            connection.execute(
                insert(join_tokens).values(
                    digest=digest, created_at=now, expires_at=expires_at, uses_left=uses
                )
            )
            detail = f"for {_admits(uses)}, until {moment(expires_at)}"
            write_audit(connection, [Deed("join_token.create", token_id(digest), detail, by, now)])

    def tokens(self, *, now: float) -> tuple[JoinTokenRecord, ...]:
        """List the join tokens that admit nodes, the oldest first."""
        usable = (join_tokens.c.expires_at > now) & (join_tokens.c.uses_left > 0)
        with reading(self._engine) as connection:
            return tuple(
                JoinTokenRecord(
                    digest=row.digest,
                    created_at=row.created_at,
                    expires_at=row.expires_at,
                    uses_left=row.uses_left,
                )
                for row in connection.execute(
                    select(join_tokens).where(usable).order_by(join_tokens.c.created_at, join_tokens.c.digest)
                )
            )

    def prune_tokens(self, now: float) -> int:
        """Delete expired join tokens and return their number; ``now`` must be trustworthy."""
        with writing(self._engine) as connection:
            return connection.execute(delete(join_tokens).where(join_tokens.c.expires_at <= now)).rowcount

    def remove_token(self, digest: str, *, now: float, by: Actor = HUB) -> bool:
        """Let a join token admit nobody any more; false if there is no such token."""
        with writing(self._engine) as connection:
            removed = connection.execute(delete(join_tokens).where(join_tokens.c.digest == digest))
            if removed.rowcount != 1:
                return False
            write_audit(connection, [Deed("join_token.end", token_id(digest), "", by, now)])
            return True

    def enrol(
        self,
        *,
        node_id: str,
        name: str,
        credential: str,
        now: float,
        token: str | None = None,
        by: Actor = HUB,
    ) -> int:
        """Add a node with the digest of its credential, paid with one use of a join token if one is given.

        Returns the revision that has it. All or nothing. ``Refused`` ``token_invalid`` if the token is unknown, spent
        or expired; ``name_taken`` if there is a node with this id.
        """
        with writing(self._engine) as connection:
            detail = "without a join token"
            if token is not None:
                spent = connection.execute(
                    update(join_tokens)
                    .where(
                        join_tokens.c.digest == token,
                        join_tokens.c.uses_left > 0,
                        join_tokens.c.expires_at > now,
                    )
                    .values(uses_left=join_tokens.c.uses_left - 1)
                    .returning(join_tokens.c.uses_left)
                ).one_or_none()
                if spent is None:
                    raise Refused(
                        "token_invalid",
                        "the join token is invalid, used up or expired; create a new one on the hub with "
                        "`gpuherd token create`",
                    )
                detail = f"by join token {token_id(token)}, which admits {_admits(spent.uses_left)} more"
            try:
                connection.execute(insert(nodes).values(id=node_id, name=name, enrolled_at=now))
            except IntegrityError:
                raise Refused(
                    "name_taken",
                    f"there is already a node {node_id}; choose another name with --name, or, if it is "
                    f"this machine, remove the old one on the hub with `gpuherd node remove {node_id}`",
                ) from None
            connection.execute(
                insert(node_credentials).values(digest=credential, node_id=node_id, created_at=now)
            )
            revision = count_change(connection, node_revision)
            write_audit(connection, [Deed("node.enrol", node_id, detail, by, now)])
            return revision

    def replace_credential(self, *, node_id: str, credential: str, now: float, by: Actor = HUB) -> bool:
        """Give a node a new credential and void its old ones; false if there is no such node."""
        with writing(self._engine) as connection:
            if not connection.execute(
                select(func.count()).select_from(nodes).where(nodes.c.id == node_id)
            ).scalar_one():
                return False
            connection.execute(delete(node_credentials).where(node_credentials.c.node_id == node_id))
            connection.execute(
                insert(node_credentials).values(digest=credential, node_id=node_id, created_at=now)
            )
            count_change(connection, node_revision)
            write_audit(connection, [Deed("node.credential", node_id, "", by, now)])
            return True

    def remove(self, node_id: str, *, now: float, by: Actor = HUB) -> bool:
        """Forget a node and its credentials; false if there is no such node."""
        with writing(self._engine) as connection:
            # Named although the database cascades: a credential must not outlive its node on any backend.
            for table in (node_credentials, known_devices, device_faults):
                connection.execute(delete(table).where(table.c.node_id == node_id))
            removed = connection.execute(delete(nodes).where(nodes.c.id == node_id)).rowcount == 1
            if removed:
                count_change(connection, node_revision)
                write_audit(connection, [Deed("node.remove", node_id, "", by, now)])
            return removed
