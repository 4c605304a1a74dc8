"""The optional parts of this installation: what each needs, and the command that adds it.

The package need not be on any index: what an extra asks for is, and is named for the Python that
runs this, however the package has come there.
"""

import shlex
import shutil
import sys
from importlib import metadata
from importlib.util import find_spec

from ..errors import InboxOrchError
from .versions import DISTRIBUTION


def missing(extra: str, purpose: str) -> InboxOrchError:
    """The error `extra_missing`: `purpose` needs the optional part `extra`."""
    return InboxOrchError(
        "extra_missing",
        f"{purpose} needs the optional part `{extra}`, which is not installed",
        hint=install_line(extra),
        details={"extra": f"{DISTRIBUTION}[{extra}]"},
    )


def install_line(extra: str) -> str:
    """The command that installs what an optional part needs beside this package."""
    python = shlex.quote(sys.executable)
    wanted = " ".join(map(shlex.quote, needed_by(extra)))
    if find_spec("pip") is not None:
        return f"{python} -m pip install {wanted}"
    if shutil.which("uv"):
        return f"uv pip install --python {python} {wanted}"
    return f"pip --python {python} install {wanted}"


def needed_by(extra: str) -> list[str]:
    """What an optional part requires, each as pip takes it; as the installed package says."""
    found = []
    for requirement in metadata.requires(DISTRIBUTION) or ():
        wanted, _, marker = requirement.partition(";")
        if marker.replace("'", '"').strip() == f'extra == "{extra}"':
            found.append(wanted.strip())
    return found
