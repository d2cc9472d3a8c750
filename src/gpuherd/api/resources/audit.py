"""GET /api/v1/audit: who did what, when and from where."""

from __future__ import annotations

from typing import Annotated, Any

from litestar import get
from litestar.params import QueryParameter

from gpuherd.api.access import Access, needs
from gpuherd.api.people_views import AuditFilter
from gpuherd.api.services import Services
from gpuherd.model.people import AuditEntry

__all__ = ["handlers"]


def handlers(services: Services) -> list[Any]:
    """Make the handlers of this resource."""

    @get("/audit", operation_id="searchAudit", opt=needs(Access.ADMIN), summary="The audit log")
    async def search_audit(
        text: Annotated[
            str | None,
            QueryParameter(
                max_length=200, description="Text anywhere in an entry, including names of people."
            ),
        ] = None,
        action: Annotated[
            str | None,
            QueryParameter(
                max_length=64, description="Such as login.failed, or booking for all actions on bookings."
            ),
        ] = None,
        account: Annotated[
            str | None,
            QueryParameter(
                max_length=64, description="Id of an account: what it did, or what was done to it."
            ),
        ] = None,
        since: Annotated[
            float | None,
            QueryParameter(ge=0, le=253_402_300_799, description="Start; UTC epoch seconds."),
        ] = None,
        until: Annotated[
            float | None,
            QueryParameter(ge=0, le=253_402_300_799, description="End; UTC epoch seconds."),
        ] = None,
        before: Annotated[
            int | None,
            QueryParameter(ge=1, le=2**62, description="Only those with a lower number, for paging."),
        ] = None,
        limit: Annotated[int, QueryParameter(ge=1, le=1000, description="Maximum number.")] = 100,
    ) -> tuple[AuditEntry, ...]:
        """Entries that match all filters, the newest first. For the next page, send the number of the last one as
        ``before``.
        """
        return await services.people.audit(
            AuditFilter(
                text=text,
                action=action,
                account_id=account,
                since=since,
                until=until,
                before_id=before,
                limit=limit,
            )
        )

    return [search_audit]
