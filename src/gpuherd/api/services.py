"""What the HTTP resources need of the hub, and nothing more."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from gpuherd.api.booking_service import BookingService
from gpuherd.api.calendars import Calendars
from gpuherd.api.glances import SentGlance
from gpuherd.api.health import Health, HealthSummary
from gpuherd.api.history_service import HistoryService, UsageService
from gpuherd.api.people import PeopleDesk
from gpuherd.api.reception import Reception
from gpuherd.fleet.recent import RecentView
from gpuherd.fleet.views import DeviceView, FleetView, NodeView, UserView
from gpuherd.model.device_memory import GpuAction
from gpuherd.model.people import PrivacyClass, Viewer
from gpuherd.model.reports import Report
from gpuherd.model.targets import NodeWay

__all__ = ["EnrolledNode", "Services"]


class EnrolledNode(Protocol):
    """What a join token buys."""

    @property
    def node_id(self) -> str:
        """The id that the hub has given."""

    @property
    def credential(self) -> str:
        """The node's secret."""


class Services(Protocol):
    """The hub as the resources see it. Everything is called on the event loop."""

    @property
    def reception(self) -> Reception:
        """Logging in and out."""

    @property
    def people(self) -> PeopleDesk:
        """Accounts and what belongs to them."""

    @property
    def mount(self) -> str:
        """The path below which the hub is reached, without its last slash."""

    @property
    def zone(self) -> str:
        """Time zone of times that come without one."""

    @property
    def are_records_missing(self) -> bool:
        """Whether the records are empty although this hub has had some."""

    @property
    def bookings_enabled(self) -> bool:
        """Whether anything can be booked."""

    @property
    def calendars(self) -> Calendars:
        """Bookings for calendar programs."""

    @property
    def bookings(self) -> BookingService:
        """Who has which device when."""

    @property
    def history(self) -> HistoryService:
        """Numbers over time."""

    @property
    def usage(self) -> UsageService:
        """Who used what."""

    async def fleet_view(self, viewer: Viewer) -> FleetView:
        """Give everything that the viewer may see, as of the last tick."""

    async def glance(self, viewer: Viewer) -> SentGlance:
        """Give what is free and who has what, as of the last tick."""

    async def called_view(self, viewer: Viewer, name: str) -> FleetView:
        """Give only the nodes that go by a name; all, if too many do."""

    async def calm_view(self, privacy: PrivacyClass) -> FleetView:
        """Give everything that a class may see, put together without holding anyone up."""

    def door_view(self, way: NodeWay) -> FleetView:
        """Give what the page of an older tool shows, whose own nodes come this way."""

    def node_view(self, viewer: Viewer, node_id: str) -> NodeView | None:
        """Give one node, or none if there is no such node."""

    def recent_view(self, viewer: Viewer, node_id: str, uuids: Collection[str] | None) -> RecentView | None:
        """Give a node's last minutes, of all its devices or of those named; none if there is no such node."""

    async def device_views(self, viewer: Viewer) -> tuple[DeviceView, ...]:
        """Give every device."""

    async def settle_gpu(
        self, viewer: Viewer, node_id: str, uuid: str, action: GpuAction
    ) -> tuple[str, ...] | None:
        """Forget a missing GPU, or acknowledge its faults and give which; None if there is no such GPU."""

    def user_views(self, viewer: Viewer) -> tuple[UserView, ...]:
        """Give everyone who holds a device."""

    def health_view(self, viewer: Viewer) -> Health | HealthSummary:
        """Tell how the hub is doing, as far as the viewer may know."""

    async def enrol(
        self, *, token: str, hostname: str, name: str | None, peer: str, credential: str | None = None
    ) -> EnrolledNode:
        """Exchange a join token for a node credential, the node's own if it brings one; ``Refused`` says why not."""

    def node_of(self, authorization: str | None, address: str) -> str:
        """Give the node that a request's credential belongs to; ``HttpError`` 401 otherwise."""

    def count_report(self, node_id: str, size_bytes: int) -> None:
        """Count a report before it is read; ``Refused`` ``too_many_frames`` if the node floods the hub."""

    def accept_report(self, node_id: str, report: Report) -> None:
        """Take a whole report; ``Refused`` if its parts do not fit together."""
