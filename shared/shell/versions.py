"""Which release of this distribution is installed. Reads names of files, and nothing of the bus."""

import os

DISTRIBUTION = "inbox-orch"
_BEGIN, _END = "inbox_orch-", ".dist-info"


def installed_release() -> str:
    """The version number of the install.

    Its record lies in a folder beside the package that is named after name and version
    (packaging.python.org, "Recording installed projects"). `importlib.metadata` finds it as well,
    but takes half as long to load as the whole command does without; it is asked where the folder
    is elsewhere, as in an editable install.
    """
    shell = os.path.dirname(os.path.abspath(__file__))
    package = os.path.dirname(os.path.dirname(shell))
    found = [
        name[len(_BEGIN) : -len(_END)]
        for name in _names_in(os.path.dirname(package))
        if name.startswith(_BEGIN) and name.endswith(_END)
    ]
    if len(found) == 1:
        return found[0]
    from importlib.metadata import version

    return version(DISTRIBUTION)


def _names_in(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []
