"""One run of an agent: `python -m inbox_orch.shared.adapters NAME TOOLSET PROGRAM [MODEL]`."""

import sys

from .running import run

if __name__ == "__main__":
    sys.exit(run(*sys.argv[1:5]))
