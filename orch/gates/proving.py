"""Whether a gate can judge in its surroundings, from how it ended on the base. Pure.

A gate in broken surroundings fails on the base, too; with "only new failures count" it would let
everything pass. So what has judged nothing, or other files, is no gate, and that is said.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from inbox_orch.shared.errors import usage

from .checks import brief_command
from .definitions import Gate
from .judging import Base
from .look import Found
from .readers.reading import EXIT
from .results import GateResult

REASONS = (
    "copy",
    "elsewhere",
    "missing_module",
    "no_setup",
    "no_tests",
    "skipped",
    "suspect",
    "unnamed",
)
"""Why a gate is none: it looked at what was installed once, or at another checkout; something that
the tests import is not there; set-up failed; no test ran; it had nothing to do; its end says
nothing; it fails without naming failures."""
_NO_TESTS = "no tests have run"
_COLLECTION = "collection failure"
_MISSING = (
    re.compile(r"(?:ModuleNotFoundError|ImportError): No module named '?([\w.]+)"),
    re.compile(r"Cannot find (?:module|package) '([^']+)'"),
)
# What test runners say that have run no test, and yet end with success.
_NOTHING = (
    re.compile(r"^Ran 0 tests in ", re.M),  # unittest before Python 3.12
    re.compile(r"^(?:=+ )?no tests ran\b", re.M),
    re.compile(r"^# tests 0$", re.M),  # node --test
    re.compile(r"^\s*0 passing\b", re.M),  # mocha
    re.compile(r"^No tests found", re.M),
)
_ALL_SKIPPED = re.compile(r"^(?:=+ )?\d+ skipped(?:, \d+ warnings?)? in [\d.]+s", re.M)
_RUST = re.compile(r"^running (\d+) tests?$", re.M)
_GO = re.compile(r"^(ok|FAIL|---|\?)[ \t]", re.M)


class Sighting(NamedTuple):
    """From where a package of the repository is imported by a gate. `state`: `here`, from the
    worktree; `elsewhere`, from other files; `copy`, from where it was installed once, so that no
    change is seen; `unknown`, it could not be seen. `name` and `place` are of the package that says
    so, `checkout` the working tree in which the place lies, `main`: it is the main one of the same
    repository. `beside` is from where a process that the tests start would import it, where that is
    not the worktree."""

    state: str
    name: str | None = None
    place: str | None = None
    checkout: str | None = None
    main: bool = False
    beside: str | None = None


UNKNOWN = Sighting("unknown")
AWAY = ("elsewhere", "copy")
"""The states of a sighting of what is not in the worktree."""


class Proof(NamedTuple):
    """Whether a gate can judge. `state` is how it ended on the base (of `results.STATES`),
    `failures` and `texts` what it has named there, `tests` how many ran, `reason` of `REASONS` for
    one that is no gate. `sentence` says all this to people, and what to do about it."""

    gate: str
    usable: bool
    state: str
    failures: Mapping[str, int] = {}
    texts: Mapping[str, str] = {}
    tests: int | None = None
    reason: str | None = None
    sentence: str = ""

    def as_json(self) -> dict[str, Any]:
        return {**self._asdict(), "failures": dict(self.failures), "texts": dict(self.texts)}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "Proof":
        """What `as_json` has made."""
        return cls(**stored)


class Surroundings(NamedTuple):
    """What was found out about a base: the set-up, the gates as they were tried there, and what
    each came to. `why`, `notes` and `packages`: see `Found`."""

    setup: str | None = None
    why: str = ""
    gates: tuple[Gate, ...] = ()
    proofs: tuple[Proof, ...] = ()
    notes: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()

    @property
    def usable(self) -> tuple[Gate, ...]:
        """The gates that can judge."""
        able = {proof.gate for proof in self.proofs if proof.usable}
        return tuple(gate for gate in self.gates if gate.name in able)

    def judges(self, gate: Gate) -> bool:
        """Whether a gate can judge, as it is. One without a command always can: it only looks at
        what was changed."""
        proof = self.proof(gate)
        return not gate.run or (proof is not None and proof.usable)

    def proof(self, gate: Gate) -> Proof | None:
        """What a gate has come to, if it was tried as it is."""
        if gate not in self.gates:
            return None
        return next((proof for proof in self.proofs if proof.gate == gate.name), None)

    def with_proofs(self, found: Found, proofs: Iterable[Proof]) -> "Surroundings":
        """These, and what gates of `found` have come to; whatever was tried with another set-up is
        forgotten."""
        kept = self if self.setup == found.setup else Surroundings()
        fresh = {proof.gate: proof for proof in proofs}
        tried = {gate.name: gate for gate in kept.gates if kept.proof(gate) is not None}
        tried |= {gate.name: gate for gate in found.gates if gate.name in fresh}
        told = {proof.gate: proof for proof in kept.proofs} | fresh
        return Surroundings(
            found.setup,
            found.why,
            tuple(tried.values()),
            tuple(told[name] for name in tried),
            found.notes,
            found.packages,
        )

    def as_json(self) -> dict[str, Any]:
        return {
            "setup": self.setup,
            "why": self.why,
            "gates": [gate.as_json() for gate in self.gates],
            "proofs": [proof.as_json() for proof in self.proofs],
            "notes": list(self.notes),
            "packages": list(self.packages),
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "Surroundings":
        """What `as_json` has made."""
        return cls(
            stored["setup"],
            stored["why"],
            tuple(Gate.from_json(each) for each in stored["gates"]),
            tuple(Proof.from_json(each) for each in stored["proofs"]),
            tuple(stored["notes"]),
            tuple(stored["packages"]),
        )


def needed(found: Found, known: Surroundings | None) -> list[Gate]:
    """The gates that have to be tried on the base: those that were not, those that are not what
    they were, and all of them after another set-up."""
    if known is None or known.setup != found.setup:
        return list(found.gates)
    return [gate for gate in found.gates if known.proof(gate) is None]


def proof_of(
    gate: Gate, result: GateResult, seen: Sighting = UNKNOWN, packages: Iterable[str] = ()
) -> Proof:
    """Whether a gate can judge that ended like this on the base, with what the canary has seen
    (`unknown` where there was none). `result` is judged with no base of its own; `packages` are
    those of the repository."""
    failures, texts = dict(result.failures), dict(result.texts)
    proof = Proof(gate.name, True, result.state, failures, texts, result.tests)
    objection = _objection(gate, result, seen, packages)
    if objection is not None:
        reason, sentence = objection
        return proof._replace(usable=False, reason=reason, sentence=sentence)
    return proof._replace(sentence=" ".join([_as_it_stands(gate, result), *_beside(seen)]))


def proof_without_setup(gate: Gate, reason: str) -> Proof:
    """Of a gate that was not tried, since set-up has failed on the base. `reason` is how, without a
    full stop."""
    sentence = (
        f"`{gate.name}` was not tried, since set-up fails on the base: {reason}. Give the line that"
        " works as `setup` of the config, or switch set-up off."
    )
    return Proof(gate.name, False, "error", reason="no_setup", sentence=sentence)


def base_by(proof: Proof | None) -> Base:
    """What a gate is judged beside in the worktree of an attempt."""
    if proof is None:
        return Base("unusable", reason="it was not tried there")
    if not proof.usable:
        return Base("unusable", reason=proof.sentence.rstrip("."))
    return Base(proof.state, proof.failures, proof.tests)


def require_usable(surroundings: Surroundings, gates: Iterable[Gate]) -> None:
    """Error `usage` when one of the gates that somebody has asked for by name cannot judge."""
    for gate in gates:
        if surroundings.judges(gate):
            continue
        proof = surroundings.proof(gate)
        if proof is None:
            raise usage(f"`{gate.name}` was not tried on the base", gate=gate.name)
        hint = "mend that, or leave the gate out"
        raise usage(proof.sentence.rstrip("."), hint=hint, gate=gate.name, reason=proof.reason)


# -- what speaks against a gate --------------------------------------------------------------


def _objection(
    gate: Gate, result: GateResult, seen: Sighting, packages: Iterable[str]
) -> tuple[str, str] | None:
    """Why it is no gate, by its code and in a sentence; None when it is one, as that without a
    command always is. What it looked at comes first: it explains the rest."""
    name, command = f"`{gate.name}`", _command(gate)
    if not gate.run:
        return None
    if seen.state in AWAY:
        return seen.state, _looked_away(name, seen)
    if result.state == "skipped":
        why = result.reason or "it had nothing to do"
        return "skipped", f"{name} was skipped on the base: {why}. It can judge nothing there."
    missing = _missing(result, packages) if result.state != "passed" else None
    if missing is not None:
        return "missing_module", (
            f"{name} needs `{missing}`, which is not there in a fresh worktree, so it cannot judge."
            f" Let `setup` of the config install it, so that `{command}` works."
        )
    if _ran_nothing(gate, result):
        return "no_tests", (
            f"{name} ran no test on the base, so it cannot judge{_unloaded(result)}. Let"
            f" `{command}` run tests there, or leave the gate out."
        )
    if result.state == "error":
        why = (result.reason or "nothing says why").partition("; ")[0].rstrip(".")
        return "suspect", (
            f"{name} could not be judged on the base: {why}. Try `{command}` in a fresh worktree,"
            " and give what works there under `gates` of the config."
        )
    if result.state == "failed" and _is_unnamed(gate, result):
        return "unnamed", (
            f"{name} fails on the base and names no failures, so old ones cannot be told from new"
            f" ones. Make `{command}` pass there, or let it write a report that is read"
            " (`reads: junit`)."
        )
    return None


def _looked_away(name: str, seen: Sighting) -> str:
    if seen.state == "copy":
        return (
            f"{name} looked at a copy: it imports `{seen.name}` from {seen.place}, where it was"
            " installed once, so no change would be seen. Let `setup` install it with `-e`, into an"
            " environment in the worktree."
        )
    where = "other files"
    if seen.checkout is not None:
        where = "the main checkout" if seen.main else "another checkout"
    return (
        f"{name} looked at {where}: it imports `{seen.name}` from {seen.place}, so no change in a"
        " worktree would be seen. An editable install or PYTHONPATH does that; let `setup` make"
        " an environment in the worktree (`python3 -m venv .venv && .venv/bin/pip install -e .`)."
    )


def _missing(result: GateResult, packages: Iterable[str]) -> str | None:
    """The module whose absence broke it. One that is missing inside of a package of the repository
    is a fault of the repository's: an old failure like others."""
    own = {each.rpartition("/")[2].removesuffix(".py") for each in packages}
    for text in (*result.texts.values(), result.output, result.reason or ""):
        for pattern in _MISSING:
            for match in pattern.finditer(text):
                top, dot, _ = match[1].partition(".")
                if not (dot and top in own) and not match[1].startswith((".", "/")):
                    return top
    return None


def _ran_nothing(gate: Gate, result: GateResult) -> bool:
    """Whether it has run no test, although it may have ended as if."""
    if gate.lints:
        return False
    if result.state == "failed":
        # pytest runs none where one file cannot be loaded.
        return result.tests == 0 or len(_uncollected(result)) == (result.tests or -1)
    return result.tests == 0 or _says_nothing_ran(result.output) or _NO_TESTS in _reason(result)


def _uncollected(result: GateResult) -> list[str]:
    """The files of tests that could not be loaded."""
    return [
        name for name, text in result.texts.items() if text.startswith(f"{name}: {_COLLECTION}")
    ]


def _unloaded(result: GateResult) -> str:
    names = _uncollected(result)
    if not names:
        return ""
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return f": `{names[0]}`{more} cannot be loaded"


def _is_unnamed(gate: Gate, result: GateResult) -> bool:
    return gate.reads == "exit" or set(result.failures) <= {f"{gate.name}:{EXIT}"}


def _reason(result: GateResult) -> str:
    return result.reason or ""


def _says_nothing_ran(output: str) -> bool:
    if any(pattern.search(output) for pattern in (*_NOTHING, _ALL_SKIPPED)):
        return True
    counts, packages = _RUST.findall(output), _GO.findall(output)
    if counts:
        return not any(map(int, counts))
    return bool(packages) and set(packages) == {"?"}


# -- what is said of one that can ------------------------------------------------------------


def _as_it_stands(gate: Gate, result: GateResult) -> str:
    ran = "" if result.tests is None else f" ({_counted(result.tests, 'test')})"
    if result.state == "passed":
        return f"`{gate.name}` passes on the base{ran}."
    failures = _counted(sum(result.failures.values()), "failure")
    counts = "all count, since it is strict" if gate.strict else "only new ones count"
    return f"`{gate.name}` has {failures} on the base{ran}: {counts}."


def _beside(seen: Sighting) -> list[str]:
    if seen.beside is None:
        return []
    told = f"A process that its tests start may import `{seen.name}` from {seen.beside}"
    return [f"{told} instead of the worktree."]


def _command(gate: Gate) -> str:
    return brief_command(gate.shown)


def _counted(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"
