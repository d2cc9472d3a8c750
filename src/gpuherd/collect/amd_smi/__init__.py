"""AMD GPUs through the ``amd-smi`` command. ``parsing.py`` are pure parsers of what it prints as JSON or CSV."""

from gpuherd.collect.amd_smi.collector import AmdSmiCollector

__all__ = ["AmdSmiCollector"]
