"""Units, bounds and descriptions are declared on the fields and nowhere else."""

from __future__ import annotations

import msgspec
import pytest

from gpuherd.model.columns import COLUMNS, columns_of
from gpuherd.model.devices import DeviceSample
from gpuherd.model.reports import Problem, Report


def test_every_number_of_a_sample_has_unit_bounds_and_description() -> None:
    for columns in COLUMNS.values():
        for column in columns:
            assert column.unit
            assert column.description.endswith((".", ")"))
            assert column.low < column.high


def test_columns_follow_the_order_of_the_fields() -> None:
    assert [column.name for column in COLUMNS["devices"]] == list(DeviceSample.__struct_fields__)


def test_bytes_are_whole_numbers_and_ratios_are_not() -> None:
    kinds = {column.name: column.is_integer for column in COLUMNS["devices"]}
    assert kinds["memory_used_bytes"]
    assert not kinds["utilization_gpu"]


def test_a_field_without_a_unit_is_a_mistake() -> None:
    class Bare(msgspec.Struct):
        value: float | None = None

    with pytest.raises(StopIteration):
        columns_of(Bare)


@pytest.mark.parametrize("value", ["NaN", "Infinity", "1.01", "-0.1", '"0.5"', "true"])
def test_a_ratio_is_a_number_between_nothing_and_all(value: str) -> None:
    with pytest.raises(msgspec.DecodeError):
        msgspec.json.decode(f'{{"utilization_gpu": {value}}}', type=DeviceSample)


def test_the_schema_of_a_report_carries_units() -> None:
    schema = msgspec.json.schema(Report)
    assert "x-unit" in str(schema["$defs"]["DeviceSample"])


def test_a_message_has_an_end() -> None:
    with pytest.raises(msgspec.ValidationError, match="512"):
        msgspec.convert({"code": "x", "message": "y" * 513}, Problem)
