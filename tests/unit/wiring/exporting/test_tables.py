"""What the tables say, and what they must never say."""

from __future__ import annotations

import csv
import io

import pytest

from gpuherd.client.herd_views import GpuBooking
from gpuherd.wiring.exporting.tables import FULL_HEADER, full_table, load_table
from support.shown_herds import GIB, NOW, shown_gpu, shown_herd, shown_node, using


def _rows(table: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(table.decode(), newline="")))


def _is_green(row: dict[str, str]) -> bool:
    """Read a row as the older tool's page does."""
    load, load_memory = (float(row[name] or "nan") for name in ("load", "load_mem"))
    return not (load >= 5 or load_memory > 2 or row["username"])


class TestLoadTable:
    def test_has_the_shape_of_the_older_tool(self) -> None:
        # What the older tool wrote of the same cards, asked by its own code.
        herd = shown_herd(
            shown_node(
                "host1.domain.tld",
                shown_gpu(
                    0, "busy", using("ada", "bob", "bob"), utilization_gpu=0.97, utilization_memory=0.43
                ),
                shown_gpu(1, "free", utilization_gpu=0.0, utilization_memory=0.0),
            ),
            shown_node(
                "host2.domain.tld",
                shown_gpu(
                    0, "busy", using(None), utilization_gpu=0.0, utilization_memory=0.0, facts={"name": "T4"}
                ),
            ),
        )
        assert load_table(herd).decode() == (
            ",load,load_mem,gpu_idx,gpu_name,gpu_uuid,hostname,username\n"
            '0,97,43,0, NVIDIA A100, GPU-0,host1.domain.tld,"ada, bob, bob"\n'
            "1,0,0,1, NVIDIA A100, GPU-1,host1.domain.tld,\n"
            "0,0,0,0, T4, GPU-0,host2.domain.tld,Zombie\n"
        )

    def test_who_is_gone_is_a_zombie_although_we_know_who_it_was(self) -> None:
        gpu = shown_gpu(0, "busy", using("ada", is_gone=True), utilization_gpu=0.0)
        (row,) = _rows(load_table(shown_herd(shown_node("a", gpu))))
        assert row["username"] == "Zombie"

    @pytest.mark.parametrize("state", ["fault", "stale", "offline", "unknown", "of tomorrow"])
    def test_what_is_not_known_has_no_row_that_would_be_green(self, state: str) -> None:
        gpus = (shown_gpu(0, state), shown_gpu(1, state, utilization_gpu=0.0, utilization_memory=0.0))
        assert _rows(load_table(shown_herd(shown_node("a", *gpus)))) == []

    def test_a_taken_device_without_load_and_user_has_no_row(self) -> None:
        gpus = (shown_gpu(0, "busy"), shown_gpu(1, "busy", using("ada")), shown_gpu(2, "free"))
        rows = _rows(load_table(shown_herd(shown_node("a", *gpus))))
        assert [(row["gpu_idx"], row["load"], _is_green(row)) for row in rows] == [
            ("1", "", False),
            ("2", "", True),
        ]

    def test_a_booked_device_is_its_holders(self) -> None:
        booking = GpuBooking(id=1, holder="ada", starts_at=0, ends_at=2**31)
        gpu = shown_gpu(0, "booked", bookings=(booking,), utilization_gpu=0.0)
        (row,) = _rows(load_table(shown_herd(shown_node("a", gpu))))
        assert row["username"] == "ada"
        assert not _is_green(row)

    def test_slices_are_told_with_their_gpu(self) -> None:
        whole = shown_gpu(0, "busy", facts={"is_partitioned": True})
        part = shown_gpu(
            0, "busy", using("ada"), facts={"uuid": "MIG-1", "kind": "slice", "parent_uuid": "GPU-0"}
        )
        (row,) = _rows(load_table(shown_herd(shown_node("a", whole, part))))
        assert (row["gpu_uuid"], row["load"], row["username"]) == (" GPU-0", "", "ada")

    def test_a_host_that_is_listed_by_its_address_is_called_by_it(self) -> None:
        node = shown_node("10.0.0.5", shown_gpu(0))
        named = type(node)(id=node.id, name="gpu5 (10.0.0.5)", state="live", devices=node.devices)
        (row,) = _rows(load_table(shown_herd(named)))
        assert row["hostname"] == "10.0.0.5"


class TestFullTable:
    def test_tells_everything_in_base_units(self) -> None:
        booking = GpuBooking(id=1, holder="ada", starts_at=int(NOW) - 11, ends_at=int(NOW) + 3589)
        gpu = shown_gpu(
            0,
            "busy",
            using("ada", None),
            reason="computing",
            since=NOW - 11,
            bookings=(booking,),
            utilization_gpu=0.5,
            memory_used_bytes=GIB,
        )
        (row,) = _rows(full_table(shown_herd(shown_node("gpu01", gpu))))
        assert tuple(row) == FULL_HEADER
        told = {name: value for name, value in row.items() if value}
        assert told == {
            "time": "2026-11-16T17:02:11Z",
            "node_id": "gpu01",
            "node": "gpu01",
            "node_state": "live",
            "place": "gpu01/0",
            "index": "0",
            "uuid": "GPU-0",
            "kind": "gpu",
            "vendor": "nvidia",
            "name": "NVIDIA A100",
            "short_name": "A100",
            "state": "busy",
            "reason": "computing",
            "since": "2026-11-16T17:02:00Z",
            "users": "ada ?",
            "processes": "2",
            "memory_total_bytes": str(80 * GIB),
            "utilization_gpu": "0.5",
            "memory_used_bytes": str(GIB),
            "booked_by": "ada",
            "booked_from": "2026-11-16T17:02:00Z",
            "booked_until": "2026-11-16T18:02:00Z",
        }

    def test_a_dead_host_has_a_row(self) -> None:
        herd = shown_herd(shown_node("gpu02", state="never", reason="gpu02: nothing listens there"))
        (row,) = _rows(full_table(herd))
        assert (row["node_state"], row["node_reason"], row["state"]) == (
            "never",
            "gpu02: nothing listens there",
            "",
        )

    def test_a_time_that_no_calendar_has_is_unknown(self) -> None:
        (row,) = _rows(full_table(shown_herd(shown_node("a", shown_gpu(0, since=1e300)))))
        assert row["since"] == ""


@pytest.mark.parametrize("hostile", ['=HYPERLINK("http://x")', "+1+1", "-2+3", "@SUM(A1)", "\t=1", "|calc"])
@pytest.mark.promise("text-is-inert")
def test_nothing_is_a_formula_or_breaks_a_line(hostile: str) -> None:
    text = f"{hostile}\r\n\u202e"
    gpu = shown_gpu(
        0, "busy", using(text), reason=text, utilization_gpu=0.5, facts={"name": text, "uuid": text}
    )
    herd = shown_herd(shown_node(text, gpu, reason=text))
    for table in (load_table(herd), full_table(herd)):
        rows = list(csv.reader(io.StringIO(table.decode(), newline="")))
        assert len(rows) == 2
        begun = [cell.strip()[:1] for cell in rows[1]]
        assert not {"=", "+", "-", "@", "|", "\t"} & set(begun)
        assert "\u202e" not in table.decode()
