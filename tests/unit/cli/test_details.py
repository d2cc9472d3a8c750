"""A node and a GPU in all their details, while they are heard of and when they are not."""

from __future__ import annotations

import re

import pytest
from msgspec import structs

from gpuherd.cli.details import gpu_lines, node_lines
from gpuherd.cli.showing import Screen
from gpuherd.client.herd_views import Disk, Gpu, GpuSample, HostFacts, HostSample, Node
from support.seen_herd import GIB, NOW, booking, gpu, node


def _of_ada(state: str) -> tuple[Node, Gpu]:
    """Give a node that told figures three hours ago, the last that are known of it."""
    sample = GpuSample(
        utilization_gpu=0.93,
        memory_used_bytes=38 * GIB,
        temperature_celsius=66.0,
        power_watts=268.0,
        fan_ratio=0.4,
        clock_sm_hertz=1.53e9,
        performance_state=0,
        ecc_corrected=3,
    )
    device = gpu(0, "busy" if state == "live" else state, users=("ada",), sample=sample)
    (process,) = device.processes
    device = structs.replace(
        device, processes=(structs.replace(process, utilization_sm=0.78, cpu_cores=1.4),)
    )
    host = HostFacts(cpu_count=64, memory_total_bytes=256 * GIB, disks=(Disk(mount="/", total_bytes=2**41),))
    return node(
        "gpu08",
        device,
        state=state,
        age=0.0 if state == "live" else 3 * 3600.0,
        host=host,
        host_sample=HostSample(cpu_ratio=0.25, load_1m=22.2, memory_used_bytes=107 * GIB, uptime_seconds=9e5),
        disks_used_bytes=(2**40,),
        clock_skew_seconds=9.0,
    ), device


OLD_FIGURES = re.compile(
    r"93%|66°|268W|40%|1530|P0|3 corrected|38\.0|78%|1\.4|25%|22\.2|107|1\.0/2T|up for|\+9 s|━|┄| SM "
)


@pytest.mark.parametrize("state", ["stale", "offline", "drowsy"])
def test_of_a_silent_node_no_figures_are_shown(state: str) -> None:
    silent, device = _of_ada(state)
    text = "\n".join(gpu_lines(silent, device, NOW, Screen()))
    assert not OLD_FIGURES.search(text), text
    assert f" {state} for 1 h  because {state}\n" in text
    assert re.search(
        r"name +NVIDIA A100 80GB\n +UUID +GPU-00000000\n +memory +80G\n +heard of +3 h ago\n", text
    )
    assert re.search(
        r"\n\n  processes as last seen, 3 h ago:\n"
        r"  pid   user  memory  for  job  command\n"
        r"  4242  ada      10G  2 h       python train\.py$",
        text,
    ), text

    text = "\n".join(node_lines(silent, NOW, Screen()))
    assert not OLD_FIGURES.search(text), text
    assert text.startswith(f"gpu08  {state}, 3 h ago  it is {state}\n")
    assert re.search(r"CPU +64 cores\n +memory +256G\n +/ +2T\n", text)
    assert "\n  processes as last seen, 3 h ago:\n" in text


def test_of_a_live_node_they_are() -> None:
    live, device = _of_ada("live")
    for lines in (gpu_lines(live, device, NOW, Screen()), node_lines(live, NOW, Screen())):
        text = "\n".join(lines)
        assert len(set(OLD_FIGURES.findall(text))) > 5, "what is looked for above is what would be shown"
        assert "last seen" not in text


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_bookings_on_a_narrow_terminal_keep_their_number(width: int) -> None:
    bookings = (
        booking("cleo", starts=-30, ends=50, use="unused"),
        booking("dan", starts=60, ends=99, phase="next"),
    )
    device = gpu(0, "booked", bookings=bookings)
    *_, current, coming = gpu_lines(node("gpu07", device), device, NOW, Screen(width=width))
    assert max(len(current), len(coming)) <= width
    assert re.search(r"cleo +.* booking 17$", current)
    assert re.search(r"dan +.* booking 17$", coming)


def test_without_a_measured_share_the_cpus_show_load_per_core() -> None:
    live, _ = _of_ada("live")
    loaded = structs.replace(live, host_sample=HostSample(load_1m=109.44))
    (line,) = [line for line in node_lines(loaded, NOW, Screen()) if "64 cores" in line]
    assert re.search(r"CPU +171%", line)
