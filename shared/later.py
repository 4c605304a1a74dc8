"""Modules that are loaded when something of theirs is first called."""

from importlib import import_module
from typing import Any


class Later:
    """Stands for a module until then: a command must not pay for what it does not use."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._name), name)
