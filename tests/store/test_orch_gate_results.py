"""What gates have come to, stored by the tree that was judged."""

import pytest

from inbox_orch.orch.gates import result_rows
from inbox_orch.orch.gates.definitions import Gate
from inbox_orch.orch.gates.grounds import ground_digest
from inbox_orch.orch.gates.results import STATES, GateResult
from support.runs import Site

TREE, OTHER = "a" * 40, "b" * 40
LINT = Gate("lint", "ruff check", "ruff")
ALONE = ground_digest(LINT, "", ())
BESIDE = ground_digest(LINT, "", (), OTHER)
FAILED = GateResult(
    "lint",
    "failed",
    "1 failure",
    {"a:X\ud800": 1},
    {"a:X\ud800": "why"},
    artifact=("gate-lint.txt", "0" * 64, 3),
    wrote=("a",),
)


@pytest.fixture
def run(site: Site):
    return site.open_run()


def put(site: Site, run, result: GateResult, tree: str = TREE, ground: str = ALONE) -> bool:
    with site.scheduler.desk.database.transaction() as tx:
        return result_rows.put(tx, run.id, tree, ground, result)


def get(site: Site, run, tree: str = TREE, ground: str = ALONE) -> GateResult | None:
    with site.scheduler.desk.database.snapshot() as snapshot:
        return result_rows.get(snapshot, run.id, tree, "lint", ground)


def test_a_result_is_had_again_for_the_same_tree_and_ground_alone(site: Site, run):
    assert put(site, run, FAILED)

    assert get(site, run) == FAILED._replace(reused=True, artifact=None)
    assert get(site, run, tree=OTHER) is None
    assert get(site, run, ground=BESIDE) is None
    assert get(site, site.open_run()) is None


def test_of_two_results_for_the_same_the_later_one_holds(site: Site, run):
    put(site, run, FAILED)
    put(site, run, GateResult("lint", "passed"))

    found = get(site, run)
    assert found is not None
    assert found.state == "passed"


@pytest.mark.parametrize("state", STATES)
def test_only_what_stays_true_of_a_tree_is_stored(site: Site, run, state: str):
    stored = put(site, run, GateResult("lint", state, "why"))

    assert stored == (state in ("passed", "failed"))
    assert (get(site, run) is not None) == stored


def test_a_base_is_known_by_what_was_judged_alone(site: Site, run):
    """A tree that is the base's may have been judged beside it, too: nothing counted then."""
    put(site, run, GateResult("lint", "passed", known=1), ground=BESIDE)
    with site.scheduler.desk.database.snapshot() as snapshot:
        assert result_rows.alone(snapshot, run.id, TREE, "lint") is None

    put(site, run, FAILED)
    put(site, run, GateResult("lint", "passed"), ground=ground_digest(LINT, "other set-up", ()))
    with site.scheduler.desk.database.snapshot() as snapshot:
        found = result_rows.alone(snapshot, run.id, TREE, "lint")
    assert found is not None
    assert found.known == 0
