"""NVIDIA GPUs through the driver's own library, NVML.

Constants and struct layouts come from NVIDIA's ``nvidia-ml-py``; the calls of every tick go straight to the
library, each with its arguments and output prepared once (``metrics.py``): a status number instead of an exception
per unsupported metric, and less work per call than the wrappers do.
"""

from gpuherd.collect.nvml.collector import NvmlCollector

__all__ = ["NvmlCollector"]
