"""The environment of the peers: other packages that do the same job, at known releases.

Kept apart from the package's own environment, and made once; that alone needs a package index.
Afterwards no peer is let onto a network: `fence` tells how.
"""

import json
import os
import shutil
import subprocess
import sys
from typing import NamedTuple

from common import SCRATCH, say

RELEASES = (
    "agent-collab-kit==0.1.2",
    "agent-lanes==0.1.1",
    "agent-mail-cli==0.5.1",
    "fleetwright==0.25.0",
    "huey==3.5.4",
    "litequeue==0.9",
    "pac-collab==0.3.0",
    "persist-queue==1.1.0",
    "rapidfuzz==3.14.6",
    "scikit-learn==1.9.1",
    "simplebroker==8.7.2",
)
FOLDER = SCRATCH / "peers"
INSTALL_SECONDS = 240
_MARK = FOLDER / "releases.txt"
# Nobody listens there, so what honours a proxy gets nowhere.
_DEAD = "http://127.0.0.1:9"


def bin_folder() -> str | None:
    """The folder of the peers' commands, with a slash; None when none can be installed."""
    wanted = "\n".join(RELEASES)
    if not _MARK.exists() or _MARK.read_text(encoding="utf-8") != wanted:
        say("installing the peers")
        base = getattr(sys, "_base_executable", sys.executable)
        made = _run([base, "-m", "venv", "--clear", str(FOLDER)])
        if not made or not (_install(*RELEASES) or _install_one_by_one()):
            say("the peers could not be installed; going on without them")
            return None
        _MARK.write_text(wanted, encoding="utf-8")
    return f"{FOLDER}/bin/"


def releases() -> dict[str, str]:
    """Package -> release of all that is installed there, also of what the peers brought along."""
    program = (
        "import importlib.metadata as m, json;"
        "print(json.dumps({d.metadata['Name'].lower(): d.version for d in m.distributions()}))"
    )
    command = [f"{FOLDER}/bin/python", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return dict(sorted(json.loads(done.stdout).items()))


def _install_one_by_one() -> bool:
    """For a machine on which one of them cannot be had; whether any could."""
    say("one of them cannot be installed; trying each by itself")
    installed = [_install(release) for release in RELEASES]
    return any(installed)


def _install(*wanted: str) -> bool:
    options = ("--quiet", "--no-input", "--disable-pip-version-check")
    return _run([f"{FOLDER}/bin/python", "-m", "pip", "install", *options, *wanted])


def _run(command: list[str]) -> bool:
    try:
        done = subprocess.run(command, stdout=sys.stderr, timeout=INSTALL_SECONDS)
    except subprocess.TimeoutExpired:
        say(f"stopped after {INSTALL_SECONDS} s: {' '.join(command[:6])}")
        return False
    return done.returncode == 0


class Fence(NamedTuple):
    """What keeps the peers off every network: words before a command, and variables."""

    words: tuple[str, ...]
    variables: dict[str, str]
    said: str


def fence() -> Fence:
    """The strongest that this machine allows: a network namespace with nothing in it, or, where
    none may be made, proxies that lead nowhere."""
    dead = dead_proxies()
    for words in (("unshare", "-n"), ("unshare", "-r", "-n")):
        if (
            shutil.which(words[0])
            and not subprocess.run([*words, "true"], capture_output=True, timeout=10).returncode
        ):
            return Fence(words, dead, f"no network (`{' '.join(words)}`)")
    return Fence((), dead, "proxies that lead nowhere; a network namespace could not be made")


def surroundings(home: str) -> dict[str, str]:
    """The environment variables of a peer's command."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL") if name in os.environ}
    return {**kept, **dead_proxies(), "HOME": home}


def dead_proxies() -> dict[str, str]:
    """The dead proxies, whether or not there is a namespace as well."""
    names = ("http_proxy", "https_proxy", "all_proxy")
    return {name: _DEAD for pair in names for name in (pair, pair.upper())}
