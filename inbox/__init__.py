"""The bus: threads that are sent, claimed under leases, and finished, in one SQLite file.

`Bus` is the public Python API. It is loaded on first use, so that the command line pays only
for what it needs. Nothing here knows of runs, tasks or attempts; that is `orch`.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .bus import Bus

__all__ = ["Bus"]


def __getattr__(name: str) -> Any:
    if name == "Bus":
        from .bus import Bus

        return Bus
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
