"""Runs an agent for one task: `python -m inbox_orch.shared.adapters NAME TOOLSET PROGRAM`."""

import sys

from .running import run

if __name__ == "__main__":
    sys.exit(run(*sys.argv[1:4]))
