"""Simulated NVIDIA cards: a C ``libnvidia-ml.so.1`` driven by scenario files. See README.md."""
