"""Answers about the past: what may be asked, how it is worked out beside the event loop, and how it is told."""
