"""The canary of a gate: from where what it tests is imported, seen once on the base."""

from collections.abc import Generator, Sequence

from ..gates.canary import canary_read, canary_spec
from ..gates.definitions import Gate
from ..gates.proving import UNKNOWN, Sighting
from ..gates.spec import GateSpec
from ..gates.trying import Ground


def sighting(
    ground: Ground, gate: Gate, packages: Sequence[str]
) -> Generator[None, None, Sighting]:
    """What the canary has seen; unknown where there is nothing to see. Raises what the runner
    does."""
    command = gate.run if isinstance(gate.run, str) else " ".join(gate.run)
    spec = GateSpec(
        command,
        ground.folder,
        ground.common,
        ground.environment,
        gate.timeout_seconds,
        ground.secrets,
    )
    canary = canary_spec(gate, spec, packages)
    if canary is None:
        return UNKNOWN
    outcome = yield from ground.runner.running(canary)
    return canary_read(outcome.content.decode("utf-8", "replace"), ground.folder)
