"""What reading a node costs now, against an earlier commit, in one run: CPU per sample of 8 busy simulated GPUs.

``python -m bench.earlier COMMIT``. Alternating runs, the least of each, as other work only adds. The registers of
health are read every 10 s; what that adds to a sample at an interval of 1 s is shown separately.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.agent import eight_busy_gpus

REPOSITORY = Path(__file__).parents[1]
ROUNDS = 5
SAMPLES = 1000
ALWAYS = """
import sys
from gpuherd.collect.nvml import health
health.HEALTH_SECONDS = 0.0
from bench.collecting import main
main()
"""


def seconds_per_sample(source: Path, environment: dict[str, str], *command: str) -> float:
    """Run the reading of one version; CPU seconds per sample."""
    done = subprocess.run(
        [sys.executable, *command, str(SAMPLES)],
        env={**os.environ, **environment, "PYTHONPATH": f"{source}:{REPOSITORY}"},
        check=True,
        stdout=subprocess.PIPE,
        cwd=REPOSITORY,
    )
    return float(done.stdout)


def main() -> None:
    """Print the costs and their ratio."""
    with tempfile.TemporaryDirectory() as folder, eight_busy_gpus(Path(folder)) as environment:
        earlier = Path(folder) / "earlier"
        subprocess.run(
            ["git", "worktree", "add", "--detach", earlier, sys.argv[1]], cwd=REPOSITORY, check=True
        )
        try:
            runs = [
                (
                    seconds_per_sample(earlier / "src", environment, "-m", "bench.collecting"),
                    seconds_per_sample(REPOSITORY / "src", environment, "-m", "bench.collecting"),
                    seconds_per_sample(REPOSITORY / "src", environment, "-c", ALWAYS),
                )
                for _ in range(ROUNDS)
            ]
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", earlier], cwd=REPOSITORY, check=True)
    before, now, always = (min(column) for column in zip(*runs, strict=True))
    paced = now + (always - now) / 10
    print(
        f"{sys.argv[1]}: {before * 1e6:.0f} µs a sample; now {now * 1e6:.0f} µs, {paced * 1e6:.0f} µs at 1 s"
    )
    print(f"ratio {now / before:.2f}, at an interval of 1 s {paced / before:.2f} (goal 1.2)")


if __name__ == "__main__":
    main()
