"""The gates of a run, to look at."""

from typing import Any, NamedTuple

from ..runs.config import config_of
from ..runs.desk import Desk
from ..runs.model import Run
from . import here_rows
from .chosen import also_found, gates_of
from .definitions import Gate
from .proving import Proof


class Listed(NamedTuple):
    """A gate; `source` is `config` or `found`. `proof`: what it came to when it was tried last on
    a base, None where it was not."""

    gate: Gate
    source: str
    proof: Proof | None

    @property
    def sentence(self) -> str | None:
        """How it stood there, for people."""
        return None if self.proof is None else self.proof.sentence

    def as_json(self) -> dict[str, Any]:
        proof = self.proof
        return {
            **self.gate.as_json(),
            "source": self.source,
            "usable": None if proof is None else proof.usable,
            "base": None if proof is None else proof.state,
            "says": self.sentence,
        }


def gate_list(desk: Desk, run: Run) -> list[Listed]:
    """The gates that a run's config says, and those that were found in its repository, in their
    order."""
    own = gates_of(config_of(run))
    with desk.database.snapshot() as snapshot:
        known = here_rows.newest_surroundings(snapshot, run.id)
    if known is None:
        return [Listed(gate, "config", None) for gate in own]
    return [
        Listed(gate, "config" if gate in own else "found", known.proof(gate))
        for gate in also_found(own, known.gates)
    ]
