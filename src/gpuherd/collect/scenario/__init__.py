"""Scenarios: files that say what simulated cards do. ``sim/README.md`` describes the format.

The C library in ``sim/`` reads the same files; formulas and rules here and there are kept equal by tests.
"""

from gpuherd.collect.scenario.cards import (
    Fault,
    Latency,
    MigSlice,
    Scenario,
    ScheduledXid,
    SimulatedGpu,
    SimulatedProcess,
)
from gpuherd.collect.scenario.loading import dump_scenario, load_scenario, parse_scenario
from gpuherd.collect.scenario.waves import Metric, Noise, Ramp, Sine, Square, Steps, Sum, quantised, value_at

__all__ = [
    "Fault",
    "Latency",
    "Metric",
    "MigSlice",
    "Noise",
    "Ramp",
    "Scenario",
    "ScheduledXid",
    "SimulatedGpu",
    "SimulatedProcess",
    "Sine",
    "Square",
    "Steps",
    "Sum",
    "dump_scenario",
    "load_scenario",
    "parse_scenario",
    "quantised",
    "value_at",
]
