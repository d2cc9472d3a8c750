"""A service in Consul: its address, its answers, and the finder that waits for changes."""

from gpuherd.discovery.consul.finder import ConsulFinder

__all__ = ["ConsulFinder"]
