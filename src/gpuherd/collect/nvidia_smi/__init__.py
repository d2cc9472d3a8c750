"""NVIDIA GPUs through the ``nvidia-smi`` command, where NVML cannot be loaded or the machine is another one.

``query.py`` and ``log.py`` are pure parsers of what it prints; ``collector.py`` knows which commands to run.
"""

from gpuherd.collect.nvidia_smi.collector import NvidiaSmiCollector

__all__ = ["NvidiaSmiCollector"]
