"""Nodes on which nothing is installed: what a script prints there becomes the same report that an agent makes.

The script in ``parts/`` runs on the node and prints rounds of blocks (``wire/blocks.py``); ``node.py`` reads them
here, with the collectors and parsers that an agent uses. Commands, files and pids are the node's, never this machine's.
"""

from gpuherd.collect.remote.node import RemoteNode
from gpuherd.collect.remote.script import node_script

__all__ = ["RemoteNode", "node_script"]
