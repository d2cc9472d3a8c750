"""gpuherd: see, share and book every GPU you own."""

__version__ = "0.1.0"
