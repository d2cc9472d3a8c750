"""Our side of P1: the whole reading of a node as the probe makes it, packed and encoded.

``python -m bench.collecting SAMPLES`` prints CPU seconds per sample.
"""

from __future__ import annotations

import sys
import time

from gpuherd.collect.node import NodeCollector
from gpuherd.collect.nvml import NvmlCollector
from gpuherd.wire.codec import encode
from gpuherd.wire.reports import sample_to_frame


def main() -> None:
    """Read many times."""
    samples = int(sys.argv[1])
    node = NodeCollector([NvmlCollector()])
    first = node.read()
    if len(first.facts.devices) != 8 or len(first.table.uses) != 8:
        raise SystemExit(f"eight busy GPUs were expected: {first.sample.problems}")
    before = time.process_time()
    for _ in range(samples):
        report = node.read()
        encode(sample_to_frame(report.sample, seq=1, facts_revision=1, table_revision=1))
    print((time.process_time() - before) / samples)


if __name__ == "__main__":
    main()
