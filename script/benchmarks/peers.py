"""The environment of the peers: other packages that do the same job, at known releases.

Kept apart from the package's own environment, and made once; that alone needs a package index.
"""

import subprocess
import sys

from common import SCRATCH, say

RELEASES = (
    "agent-collab-kit==0.1.2",
    "fleetwright==0.25.0",
    "huey==3.5.4",
    "litequeue==0.9",
    "persist-queue==1.1.0",
    "simplebroker==8.7.2",
)
FOLDER = SCRATCH / "peers"
_MARK = FOLDER / "releases.txt"


def bin_folder() -> str | None:
    """The folder of the peers' commands, with a slash; None when they cannot be installed."""
    wanted = "\n".join(RELEASES)
    if not _MARK.exists() or _MARK.read_text(encoding="utf-8") != wanted:
        say("installing the peers")
        base = getattr(sys, "_base_executable", sys.executable)
        python = str(FOLDER / "bin" / "python")
        for command in (
            [base, "-m", "venv", "--clear", str(FOLDER)],
            [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *RELEASES],
        ):
            if subprocess.run(command, stdout=sys.stderr).returncode:
                say("the peers could not be installed; going on without them")
                return None
        _MARK.write_text(wanted, encoding="utf-8")
    return f"{FOLDER}/bin/"
