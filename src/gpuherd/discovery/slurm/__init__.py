"""The nodes of a Slurm cluster: what its commands print, and the finder that runs them."""

from gpuherd.discovery.slurm.finder import SlurmFinder

__all__ = ["SlurmFinder"]
