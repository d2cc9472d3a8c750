"""What viewers without a login see of bookings."""

from __future__ import annotations

import pytest

from gpuherd.api.booking_faces import BookingFace
from gpuherd.bookings.herd import Herd
from gpuherd.model.bookings import Booking, DeviceRef
from gpuherd.model.people import PrivacyClass, Viewer

BOOKING = Booking(
    id=1,
    owner_id="a1",
    owner_name="Ada",
    group="vision",
    title="a title",
    comment="a comment",
    devices=(DeviceRef("n1", "GPU-0"),),
    starts_at=0,
    ends_at=100,
    zone="Europe/Paris",
    state="active",
    created_at=0.0,
    changed_at=0.0,
    revision=1,
)


@pytest.mark.parametrize(("privacy", "holder"), [("public", "~someone"), ("names", "Ada")])
def test_a_booking_without_a_login_has_no_text_but_perhaps_its_holder(
    privacy: PrivacyClass, holder: str
) -> None:
    face = BookingFace(Viewer(privacy=privacy), Herd(()), 10.0, pseudonym=lambda _: "~someone")
    view = face.view(BOOKING)
    assert (view.holder, view.title, view.comment, view.group, view.owner_id) == (holder, "", "", None, None)
    timeline = face.timeline([BOOKING], since=0, until=100, nodes=None, is_current=True)
    assert [(bar.holder, bar.title, bar.group) for bar in timeline.bookings] == [(holder, "", None)]
