"""Recorded ``nvidia-smi -q -x`` output becomes a scenario, whatever the schema version calls things."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuherd.collect.scenario import dump_scenario, parse_scenario
from gpuherd.collect.smi_xml_scenario import scenario_from_smi_xml
from gpuherd.model.errors import Misconfigured

FIXTURES = Path(os.environ.get("GPUHERD_FIXTURES", Path(__file__).parents[4] / "shared" / "fixtures"))
RECORDINGS = sorted(FIXTURES.rglob("*.xml"))
MIB = 2**20


def recording(gpu: str, *, version: int = 12) -> bytes:
    return f"""<?xml version="1.0" ?>
<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v{version}.dtd">
<nvidia_smi_log>
  <timestamp>Mon Jan  1 00:00:00 2024</timestamp>
  <driver_version>550.54.15</driver_version>
  <cuda_version>12.4</cuda_version>
  <gpu id="00000000:01:00.0"><uuid>GPU-1</uuid><product_name>Card</product_name>{gpu}</gpu>
</nvidia_smi_log>""".encode()


@pytest.mark.parametrize(
    ("version", "readings"),
    [
        (11, "<power_readings>{draw}<enforced_power_limit>70.00 W</enforced_power_limit></power_readings>"),
        (
            12,
            "<module_power_readings/><gpu_power_readings>{draw}<current_power_limit>70.00 W</current_power_limit>{end}",
        ),
    ],
)
def test_power_has_moved_between_versions(version: int, readings: str) -> None:
    xml = readings.format(draw="<power_draw>26.78 W</power_draw>", end="</gpu_power_readings>")
    gpu = scenario_from_smi_xml(recording(xml, version=version)).gpus[0]
    assert (gpu.power_watts, gpu.power_limit_watts) == (26.78, 70)


def test_power_of_version_13_is_the_average() -> None:
    xml = (
        "<gpu_power_readings><average_power_draw>13.60 W</average_power_draw>"
        "<instant_power_draw>13.59 W</instant_power_draw></gpu_power_readings>"
    )
    assert scenario_from_smi_xml(recording(xml, version=13)).gpus[0].power_watts == 13.6


@pytest.mark.parametrize(
    "word",
    [
        "N/A",
        "[N/A]",
        "[Not Supported]",
        "ERR!",
        "[Unknown Error]",
        "",
        "-",
        "Requested functionality deprecated",
    ],
)
def test_words_for_nothing_are_none(word: str) -> None:
    xml = (
        f"<fan_speed>{word}</fan_speed><serial>{word}</serial>"
        f"<ecc_mode><current_ecc>{word}</current_ecc></ecc_mode>"
        f"<fb_memory_usage><total>{word}</total></fb_memory_usage>"
    )
    gpu = scenario_from_smi_xml(recording(xml)).gpus[0]
    assert (gpu.fan_percent, gpu.serial, gpu.ecc_mode, gpu.memory_total_bytes) == (None, None, None, None)


def test_zero_is_a_value() -> None:
    xml = "<fan_speed>0 %</fan_speed><performance_state>P0</performance_state><minor_number>0</minor_number>"
    gpu = scenario_from_smi_xml(recording(xml)).gpus[0]
    assert (gpu.fan_percent, gpu.performance_state, gpu.minor_number) == (0, 0, 0)


@pytest.mark.parametrize("word", ["event", "throttle"])
def test_throttle_reasons_under_both_names(word: str) -> None:
    xml = (
        f"<clocks_{word}_reasons>"
        f"<clocks_{word}_reason_gpu_idle>Not Active</clocks_{word}_reason_gpu_idle>"
        f"<clocks_{word}_reason_sw_power_cap>Active</clocks_{word}_reason_sw_power_cap>"
        f"<clocks_{word}_reason_hw_thermal_slowdown>Active</clocks_{word}_reason_hw_thermal_slowdown>"
        f"</clocks_{word}_reasons>"
    )
    assert scenario_from_smi_xml(recording(xml)).gpus[0].throttle_reasons == 0x44


def test_ecc_errors_of_three_schemas() -> None:
    by_bits = (
        "<ecc_errors><volatile><single_bit><device_memory>7</device_memory><total>7</total></single_bit>"
        "<double_bit><total>2</total></double_bit></volatile></ecc_errors>"
    )
    by_place = (
        "<ecc_errors><volatile><sram_correctable>1</sram_correctable><sram_uncorrectable>2</sram_uncorrectable>"
        "<dram_correctable>3</dram_correctable><dram_uncorrectable>4</dram_uncorrectable></volatile></ecc_errors>"
    )
    split = (
        "<ecc_errors><volatile><sram_correctable>N/A</sram_correctable>"
        "<sram_uncorrectable_parity>1</sram_uncorrectable_parity>"
        "<sram_uncorrectable_secded>2</sram_uncorrectable_secded>"
        "<dram_uncorrectable>4</dram_uncorrectable></volatile></ecc_errors>"
    )
    found = [scenario_from_smi_xml(recording(xml)).gpus[0] for xml in (by_bits, by_place, split)]
    assert [(gpu.ecc_corrected_volatile, gpu.ecc_uncorrected_volatile) for gpu in found] == [
        (7, 2),
        (4, 6),
        (None, 7),
    ]
    assert found[0].ecc_corrected_aggregate is None


def test_processes_become_named_fakes_and_find_their_slice() -> None:
    xml = (
        "<mig_mode><current_mig>Enabled</current_mig></mig_mode><mig_devices><mig_device>"
        "<index>0</index><gpu_instance_id>3</gpu_instance_id><compute_instance_id>0</compute_instance_id>"
        "<device_attributes><shared><multiprocessor_count>28</multiprocessor_count></shared></device_attributes>"
        "<fb_memory_usage><total>19968 MiB</total><used>12 MiB</used></fb_memory_usage></mig_device></mig_devices>"
        "<processes>"
        "<process_info><gpu_instance_id>3</gpu_instance_id><compute_instance_id>0</compute_instance_id>"
        "<pid>11</pid><type>C</type><process_name>python a.py</process_name><used_memory>10 MiB</used_memory>"
        "</process_info>"
        "<process_info><gpu_instance_id>N/A</gpu_instance_id><compute_instance_id>N/A</compute_instance_id>"
        "<pid>12</pid><type>C+G</type><process_name>Xorg</process_name><used_memory>N/A</used_memory>"
        "</process_info></processes>"
    )
    gpu = scenario_from_smi_xml(recording(xml)).gpus[0]
    (mig_slice,) = gpu.mig_slices
    assert (mig_slice.profile, mig_slice.gpu_instance, mig_slice.compute_instance) == ("2g.20gb", 3, 0)
    assert (mig_slice.memory_total_bytes, mig_slice.memory_used_bytes) == (19968 * MIB, 12 * MIB)
    (on_slice,), (on_gpu,) = mig_slice.processes, gpu.processes
    assert (on_slice.pid, on_slice.command, on_slice.memory_used_bytes) == (11, "python a.py", 10 * MIB)
    assert (on_gpu.pid, on_gpu.type, on_gpu.memory_used_bytes) == (12, "compute+graphics", None)
    assert on_slice.is_fake
    assert scenario_from_smi_xml(recording(xml)).gpus[0].mig_slices[0].uuid == mig_slice.uuid


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "well-formed"),
        (b"NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.", "well-formed"),
        (b"<html></html>", "driver_version"),
        (b"<a>" + b"\xff\xfe" + b"</a>", "UTF-8"),
        (b'<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', "entities"),
        (recording("<x>")[:-30], "well-formed"),
        (recording("<processes><process_info><type>C</type></process_info></processes>"), "pid"),
        (b"<a>" + b" " * 17_000_000 + b"</a>", "larger than 16 MiB"),
    ],
    ids=["empty", "message", "other XML", "not UTF-8", "entities", "cut off", "no pid", "huge"],
)
def test_what_is_no_recording_is_refused_with_its_source(content: bytes, reason: str) -> None:
    with pytest.raises(Misconfigured, match=rf"node7\.xml: .*{reason}"):
        scenario_from_smi_xml(content, "node7.xml")


@given(st.binary(max_size=200))
def test_any_bytes_give_a_scenario_or_a_clean_error(content: bytes) -> None:
    for candidate in (content, recording("<fan_speed>1 %</fan_speed>").replace(b"Card", content)):
        try:
            scenario = scenario_from_smi_xml(candidate)
        except Misconfigured:
            continue
        assert parse_scenario(dump_scenario(scenario), "test") == scenario


@pytest.mark.skipif(not RECORDINGS, reason=f"no recorded nvidia-smi -q -x output under {FIXTURES}")
@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_recorded_cards(path: Path) -> None:
    scenario = scenario_from_smi_xml(path.read_bytes(), str(path))
    assert scenario.gpus
    for gpu in scenario.gpus:
        assert gpu.uuid.startswith("GPU-")
        assert gpu.memory_total_bytes is not None
        assert gpu.temperature_celsius is not None
        assert gpu.power_limit_watts is not None
        assert gpu.clock_sm_max_mhz is not None
    assert parse_scenario(dump_scenario(scenario), "test") == scenario
