"""AMD GPUs through the older ``rocm-smi`` command. ``parsing.py`` is a pure parser of what it prints as JSON."""

from gpuherd.collect.rocm_smi.collector import RocmSmiCollector

__all__ = ["RocmSmiCollector"]
