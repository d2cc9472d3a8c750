"""Enrolment: a join token buys a per-node credential; the credential says who a node is."""

from __future__ import annotations

import hmac

from msgspec import Struct

from gpuherd.auth.node_ids import check_looks, node_id_for
from gpuherd.auth.secrets import (
    JOIN_TOKEN_PREFIX,
    NODE_CREDENTIAL_PREFIX,
    digest,
    is_node_credential,
    new_secret,
)
from gpuherd.model.errors import Refused
from gpuherd.model.people import HUB, Actor
from gpuherd.model.text import clean
from gpuherd.records.nodes import EnrolledNodes, NodeRecord, NodeRecords
from gpuherd.records.nodes import token_id as id_of

__all__ = ["Credentials", "Enrolled", "Enrolment", "JoinToken", "node_id_for"]

_MAX_SECRET_LENGTH = 200


class Enrolled(Struct, frozen=True, kw_only=True):
    """A node and its secret."""

    node_id: str
    name: str
    credential: str
    revision: int
    """Of the records, no later than which the node was in them: who has read this one or a later one knows better."""


class JoinToken(Struct, frozen=True, kw_only=True):
    """A join token that still admits nodes; its id says nothing of the token itself. Times in UTC epoch seconds."""

    id: str
    created_at: float
    expires_at: float
    uses_left: int


class Credentials:
    """The known credentials in memory: asked on every connection, so no database is on that way."""

    def __init__(self, enrolled: EnrolledNodes) -> None:
        self._digests = {known: (known, node_id) for known, node_id in enrolled.credentials.items()}

    def add(self, credential: str, node_id: str) -> None:
        """Add a credential, by its digest."""
        self._digests[credential] = (credential, node_id)

    def node_of(self, credential: str) -> str | None:
        """Give the node a credential belongs to, or none.

        What is compared are digests, so that the time taken tells nothing about a stored secret.
        """
        if not credential.startswith(NODE_CREDENTIAL_PREFIX) or len(credential) > _MAX_SECRET_LENGTH:
            return None
        wanted = digest(credential)
        known = self._digests.get(wanted)
        return known[1] if known is not None and hmac.compare_digest(known[0], wanted) else None


class Enrolment:
    """Join tokens and nodes on top of the records. Blocking."""

    def __init__(self, records: NodeRecords) -> None:
        self._records = records

    def close(self) -> None:
        """Close the records."""
        self._records.close()

    def create_token(
        self, *, now: float, lifetime_seconds: float = 3600.0, uses: int = 1, by: Actor = HUB
    ) -> str:
        """Make a join token, valid for a time and a number of nodes."""
        token = new_secret(JOIN_TOKEN_PREFIX)
        self._records.add_token(
            digest=digest(token), now=now, expires_at=now + lifetime_seconds, uses=uses, by=by
        )
        return token

    def tokens(self, *, now: float) -> tuple[JoinToken, ...]:
        """List the join tokens that still admit nodes, the oldest first."""
        return tuple(
            JoinToken(
                id=id_of(record.digest),
                created_at=record.created_at,
                expires_at=record.expires_at,
                uses_left=record.uses_left,
            )
            for record in self._records.tokens(now=now)
        )

    def revoke_token(self, token_id: str, *, now: float, by: Actor = HUB) -> None:
        """Let a join token admit nobody any more; nodes that have joined with it stay. ``Refused`` if there is none."""
        for record in self._records.tokens(now=now):
            if id_of(record.digest) == token_id and self._records.remove_token(record.digest, now=now, by=by):
                return
        raise Refused(
            "unknown_token",
            f"there is no valid join token {clean(token_id)}; `gpuherd token list` shows them",
        )

    def enrol(
        self, *, token: str, name: str, now: float, credential: str | None = None, peer: str | None = None
    ) -> Enrolled:
        """Buy a credential with a join token; ``Refused`` if the token or the name will not do.

        ``credential`` is one that the node has made for itself. Asking again with it, because the answer was lost,
        gives the same answer and spends nothing, however old the token: who knows it is the node. ``peer`` is where the
        node asks from, for the audit log.
        """
        by = Actor(account_id=None, label="join token", peer=peer)
        if not token.startswith(JOIN_TOKEN_PREFIX) or len(token) > _MAX_SECRET_LENGTH:
            raise Refused(
                "token_invalid",
                f"this is not a join token: join tokens start with {JOIN_TOKEN_PREFIX} and are created on "
                "the hub with `gpuherd token create`",
            )
        if credential is None:
            return self._add(name, now, by, digest(token))
        if not is_node_credential(credential):
            raise Refused(
                "credential_invalid",
                f"a node's own credential is {NODE_CREDENTIAL_PREFIX} and 43 characters of A–Z, a–z, 0–9, _ and -",
            )
        return self._enrolled_before(name, credential) or self._add(name, now, by, digest(token), credential)

    def _enrolled_before(self, name: str, credential: str) -> Enrolled | None:
        node_id = self._records.node_of(digest(credential))
        if node_id is None:
            return None
        if node_id != node_id_for(clean(name)):
            raise Refused(
                "credential_taken",
                f"this credential belongs to node {node_id}; if this machine was copied from it, delete "
                "the copied files in the agent's state folder and start the agent again",
            )
        return self._enrolled(node_id, name, credential)

    def _enrolled(self, node_id: str, name: str, credential: str) -> Enrolled:
        revision = self._records.revision()
        return Enrolled(node_id=node_id, name=clean(name), credential=credential, revision=revision)

    def admit(self, name: str, *, now: float) -> Enrolled:
        """Enrol without a token, for the machine the hub runs on. A node of this name gets a new credential."""
        node_id, credential = node_id_for(name), new_secret(NODE_CREDENTIAL_PREFIX)
        if self._records.replace_credential(node_id=node_id, credential=digest(credential), now=now):
            return self._enrolled(node_id, name, credential)
        return self._add(name, now, HUB, None)

    def _add(
        self, name: str, now: float, by: Actor, token: str | None, credential: str | None = None
    ) -> Enrolled:
        name = clean(name)
        check_looks(name)
        node_id, secret = node_id_for(name), credential or new_secret(NODE_CREDENTIAL_PREFIX)
        try:
            revision = self._records.enrol(
                node_id=node_id, name=name, credential=digest(secret), now=now, token=token, by=by
            )
        except Refused:
            # The same request may have come twice at the same time, and the other was faster.
            before = None if credential is None else self._enrolled_before(name, credential)
            if before is None:
                raise
            return before
        return Enrolled(node_id=node_id, name=name, credential=secret, revision=revision)

    def nodes(self) -> tuple[NodeRecord, ...]:
        """List every node."""
        return self._records.load().nodes

    def load(self) -> EnrolledNodes:
        """Read every node and credential."""
        return self._records.load()

    def revision(self) -> int:
        """Count of changes so far."""
        return self._records.revision()

    def remove(self, node_id: str, *, now: float, by: Actor = HUB) -> None:
        """Forget a node; a running hub closes its link within seconds. ``Refused`` if there is no such node."""
        if not self._records.remove(node_id, now=now, by=by):
            raise Refused(
                "unknown_node", f"there is no node {clean(node_id)}; `gpuherd node list` shows them"
            )
