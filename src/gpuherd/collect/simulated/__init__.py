"""Simulated GPUs without a compiler: plays the scenarios that ``sim/``'s C library plays, in Python.

What it reports equals what the NVML collector reads from the C library with the same scenario (a test compares them),
except that ``vendor`` says "simulated".
"""

from gpuherd.collect.simulated.collector import SimulatedCollector

__all__ = ["SimulatedCollector"]
