"""Texts that ship with the package, as they are."""

from importlib import resources


def packaged(package: str, name: str) -> str:
    """The text of a file in the folder `texts` of a package."""
    return resources.files(package).joinpath("texts", name).read_text(encoding="utf-8")
