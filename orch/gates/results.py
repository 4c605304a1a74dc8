"""What a gate came to. Pure."""

from collections.abc import Mapping
from typing import Any, NamedTuple

STATES = ("passed", "failed", "skipped", "error")
"""How a gate ends. `error`: it could not be judged, which is never a worker's to mend; `skipped`
has a reason and is no pass."""


class GateResult(NamedTuple):
    """`state` is of `STATES`, `reason` one line (None for a plain pass). `failures` are those that
    count: id to how often; `texts` says for each what it was, in a line; `known` how many the base
    has, too; `flaky` are ids that failed once and then passed. `tests` is how many tests ran, None
    where the reader does not say. `output` is the last of its output, masked and bounded;
    `artifact` names the whole of it (name, sha256, bytes). `reused`: it was judged before.
    `wrote` are paths that it changed, and that were put back or kept."""

    gate: str
    state: str
    reason: str | None = None
    failures: Mapping[str, int] = {}
    texts: Mapping[str, str] = {}
    known: int = 0
    flaky: tuple[str, ...] = ()
    tests: int | None = None
    seconds: float = 0.0
    output: str = ""
    artifact: tuple[str, str, int] | None = None
    reused: bool = False
    wrote: tuple[str, ...] = ()
    mode: str = "block"

    @property
    def stops(self) -> bool:
        """Whether work does not go on past it."""
        return self.mode == "block" and self.state in ("failed", "error")

    def as_json(self) -> dict[str, Any]:
        facts = self._asdict()
        facts["flaky"], facts["wrote"] = list(self.flaky), list(self.wrote)
        facts["artifact"] = None if self.artifact is None else list(self.artifact)
        return facts

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "GateResult":
        """What `as_json` has made."""
        values: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in stored.items()
        }
        return cls(**values)
