"""Texts that ship with the package, as they are."""

import importlib
import os


def packaged(package: str, name: str) -> str:
    """The text of a file in the folder `texts` of a package."""
    with open(os.path.join(package_folder(package), "texts", name), encoding="utf-8") as file:
        return file.read()


def package_folder(package: str) -> str:
    """The folder that a package was installed into."""
    # importlib.resources would cost a tenth of the command's time.
    place = importlib.import_module(package).__file__
    assert place is not None
    return os.path.dirname(place)
