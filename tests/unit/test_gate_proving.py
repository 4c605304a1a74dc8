"""Whether a gate can judge, by how it ended on the base; and what people are told."""

import json

import pytest

from inbox_orch.orch.gates.definitions import Gate
from inbox_orch.orch.gates.judging import Base
from inbox_orch.orch.gates.look import Found
from inbox_orch.orch.gates.proving import (
    REASONS,
    Proof,
    Sighting,
    Surroundings,
    base_by,
    needed,
    proof_of,
    proof_without_setup,
    require_usable,
)
from inbox_orch.orch.gates.results import GateResult
from inbox_orch.shared.errors import InboxOrchError

TESTS = Gate("tests", ("pytest",), "junit")
LINT = Gate("lint", ("ruff",), "ruff")
BUILD = Gate("build", "make  all")
GO = Gate("tests", ("go", "test", "./..."), "lines", pattern="FAIL (.*)")
CONFIG = "under `gates` of the config."


def result(gate: Gate, state: str, *failures: str, **named) -> GateResult:
    counts = {name: failures.count(name) for name in failures}
    return GateResult(gate.name, state, failures=counts, **named)


@pytest.mark.parametrize(
    "gate, found, sentence",
    [
        (TESTS, result(TESTS, "passed", tests=8), "`tests` passes on the base (8 tests)."),
        (TESTS, result(TESTS, "passed", tests=1), "`tests` passes on the base (1 test)."),
        (BUILD, result(BUILD, "passed"), "`build` passes on the base."),
        (
            TESTS,
            result(TESTS, "failed", "a", "a", "b", tests=9),
            "`tests` has 3 failures on the base (9 tests): only new ones count.",
        ),
        (
            LINT._replace(strict=True),
            result(LINT, "failed", "a"),
            "`lint` has 1 failure on the base: all count, since it is strict.",
        ),
        (
            GO,
            result(GO, "passed", output="running 2 tests\nx\n   Doc-tests a\nrunning 0 tests\n"),
            "`tests` passes on the base.",
        ),
        # A linter that has nothing to look at has found nothing.
        (LINT, result(LINT, "passed", output="Ran 0 tests in 1s"), "`lint` passes on the base."),
        # What a package of the repository lacks is a fault of the repository's.
        (
            TESTS,
            result(
                TESTS,
                "failed",
                "t",
                tests=3,
                output="ModuleNotFoundError: No module named 'own.gone'",
            ),
            "`tests` has 1 failure on the base (3 tests): only new ones count.",
        ),
        (
            GO,
            result(GO, "passed", output="?   \tm/a\t[no test files]\nok  \tm/b\t0.1s"),
            "`tests` passes on the base.",
        ),
    ],
)
def test_what_passes_or_names_its_failures_can_judge(gate: Gate, found: GateResult, sentence: str):
    proof = proof_of(gate, found, packages=("src/own",))

    assert (proof.usable, proof.reason, proof.sentence) == (True, None, sentence)
    assert base_by(proof) == Base(found.state, found.failures, found.tests)


def ran_nothing(command: str = "pytest") -> str:
    return (
        f"`tests` ran no test on the base, so it cannot judge. Let `{command}` run tests there, or"
        " leave the gate out."
    )


NOTHING_KNOWN = "; and nothing is known of the base"


@pytest.mark.parametrize(
    "gate, found, reason, sentence",
    [
        (
            TESTS,
            result(TESTS, "error", reason="no tests have run (exit status 5)" + NOTHING_KNOWN),
            "no_tests",
            ran_nothing(),
        ),
        (TESTS, result(TESTS, "passed", tests=0), "no_tests", ran_nothing()),
        (
            TESTS,
            result(TESTS, "error", output="sss\n3 skipped in 0.01s\n", reason="x"),
            "no_tests",
            ran_nothing(),
        ),
        (
            TESTS._replace(reads="exit"),
            result(TESTS, "passed", output="Ran 0 tests in 0.000s\n\nOK\n"),
            "no_tests",
            ran_nothing(),
        ),
        (
            TESTS._replace(reads="exit"),
            result(TESTS, "passed", output="running 0 tests\n\nrunning 0 tests\n"),
            "no_tests",
            ran_nothing(),
        ),
        (
            GO,
            result(GO, "passed", output="?   \tm/a\t[no test files]\n"),
            "no_tests",
            ran_nothing("go test ./..."),
        ),
        (
            TESTS,
            result(
                TESTS,
                "failed",
                *("t.a", "t.b"),
                tests=2,
                texts={"t.a": "t.a: collection failure E x", "t.b": "t.b: collection failure"},
            ),
            "no_tests",
            (
                "`tests` ran no test on the base, so it cannot judge: `t.a` and 1 more cannot"
                " be loaded."
                " Let `pytest` run tests there, or leave the gate out."
            ),
        ),
        (
            TESTS,
            result(
                TESTS,
                "failed",
                "t.a",
                tests=7,
                texts={"t.a": "t.a: ModuleNotFoundError: No module named 'yaml.reader'"},
            ),
            "missing_module",
            (
                "`tests` needs `yaml`, which is not there in a fresh worktree, so it"
                " cannot judge. Let"
                " `setup` of the config install it, so that `pytest` works."
            ),
        ),
        # The package that is tested is not there either where nothing installs it.
        (
            TESTS,
            result(TESTS, "failed", "t.a", output="E   ModuleNotFoundError: No module named 'own'"),
            "missing_module",
            (
                "`tests` needs `own`, which is not there in a fresh worktree, so it cannot"
                " judge. Let"
                " `setup` of the config install it, so that `pytest` works."
            ),
        ),
        (
            BUILD,
            result(BUILD, "failed", "build:exit", output="Error: Cannot find module 'react'\n"),
            "missing_module",
            (
                "`build` needs `react`, which is not there in a fresh worktree, so it"
                " cannot judge. Let"
                " `setup` of the config install it, so that `make all` works."
            ),
        ),
        (
            TESTS,
            result(TESTS, "error", reason="it was stopped after 5 s" + NOTHING_KNOWN),
            "suspect",
            (
                "`tests` could not be judged on the base: it was stopped after 5 s. Try"
                " `pytest` in a"
                f" fresh worktree, and give what works there {CONFIG}"
            ),
        ),
        (
            BUILD,
            result(BUILD, "failed", "build:exit"),
            "unnamed",
            (
                "`build` fails on the base and names no failures, so old ones cannot be"
                " told from new"
                " ones. Make `make all` pass there, or let it write a report that is read"
                " (`reads: junit`)."
            ),
        ),
        (
            GO,
            result(GO, "failed", "tests:exit"),
            "unnamed",
            (
                "`tests` fails on the base and names no failures, so old ones cannot be"
                " told from new"
                " ones. Make `go test ./...` pass there, or let it write a report that is read"
                " (`reads: junit`)."
            ),
        ),
        (
            TESTS,
            result(TESTS, "skipped", reason="nothing is changed in src/**"),
            "skipped",
            (
                "`tests` was skipped on the base: nothing is changed in src/**. It can"
                " judge nothing"
                " there."
            ),
        ),
    ],
)
def test_what_has_judged_nothing_is_no_gate(
    gate: Gate, found: GateResult, reason: str, sentence: str
):
    proof = proof_of(gate, found, packages=("src/own",))

    assert (proof.usable, proof.reason, proof.sentence) == (False, reason, sentence)
    assert base_by(proof) == Base("unusable", reason=sentence.rstrip("."))
    assert reason in REASONS


@pytest.mark.parametrize(
    "seen, where",
    [
        (Sighting("elsewhere", "a", "/m/a", "/m", True), "the main checkout"),
        (Sighting("elsewhere", "a", "/m/a", "/m"), "another checkout"),
        (Sighting("elsewhere", "a", "/m/a"), "other files"),
    ],
)
def test_what_has_looked_away_is_no_gate_however_it_ended(seen: Sighting, where: str):
    for found in (
        result(TESTS, "passed", tests=3),
        result(TESTS, "failed", "a", tests=3),
        result(TESTS, "error", reason="no tests have run"),
    ):
        proof = proof_of(TESTS, found, seen)

        assert (proof.usable, proof.reason) == (False, "elsewhere")
        assert proof.sentence.startswith(f"`tests` looked at {where}: it imports `a` from /m/a, so")


def test_nothing_is_tried_again_that_is_known():
    found = Found("npm ci", gates=(TESTS, LINT))
    known = Surroundings().with_proofs(found, [proof_of(TESTS, result(TESTS, "passed", tests=1))])

    assert needed(found, None) == [TESTS, LINT]
    assert needed(found, known) == [LINT]
    longer = TESTS._replace(timeout_seconds=5.0)
    assert needed(found._replace(gates=(longer,)), known) == [longer]
    assert needed(found._replace(setup="make"), known) == [TESTS, LINT]
    assert known.proof(longer) is None


def test_another_set_up_lets_what_was_proved_be_forgotten():
    found = Found("npm ci", gates=(TESTS, LINT))
    passed = proof_of(TESTS, result(TESTS, "passed", tests=1))
    known = Surroundings().with_proofs(found, [passed])

    again = known.with_proofs(
        found._replace(setup="make"), [proof_of(LINT, result(LINT, "passed"))]
    )

    assert (again.gates, again.setup) == ((LINT,), "make")


def test_surroundings_survive_their_text():
    failed = result(TESTS, "failed", "a", texts={"a": "broke"}, tests=2)
    found = Found("npm ci", "a lock", (TESTS, BUILD), ("A note.",), ("src/a",))
    proofs = [proof_of(TESTS, failed), proof_without_setup(BUILD, "exit status 1")]
    known = Surroundings().with_proofs(found, proofs)

    assert Surroundings.from_json(json.loads(json.dumps(known.as_json()))) == known
    assert known.usable == (TESTS,)
    assert known.proofs[1].sentence == (
        "`build` was not tried, since set-up fails on the base: exit status 1. Give the line that"
        " works as `setup` of the config, or switch set-up off."
    )


def test_what_has_no_command_only_looks_at_changes_and_can_always_judge():
    safety = Gate("patch-safety", ())

    proof = proof_of(safety, result(safety, "skipped", reason="nothing says what was changed"))

    assert proof.usable
    assert Surroundings().judges(safety)
    require_usable(Surroundings(), [safety])


def test_a_gate_that_was_asked_for_and_cannot_judge_is_refused():
    found = Found(gates=(TESTS, BUILD))
    broken = proof_of(BUILD, result(BUILD, "failed", "build:exit"))
    known = Surroundings().with_proofs(found, [Proof("tests", True, "passed"), broken])

    require_usable(known, [TESTS])
    with pytest.raises(InboxOrchError) as refused:
        require_usable(known, [TESTS, BUILD])
    with pytest.raises(InboxOrchError) as unknown:
        require_usable(known, [LINT])

    assert (refused.value.code, unknown.value.code) == ("usage", "usage")
    assert refused.value.message == broken.sentence.rstrip(".")
    assert refused.value.details == {"gate": "build", "reason": "unnamed"}
    assert unknown.value.message == "`lint` was not tried on the base"
