"""What is handed in as text, case by case (tests/data/patches.toml): nothing is taken that is not
to be, nothing is refused that could be taken, and the rule is named."""

import pytest

from inbox_orch.orch.git.commands import git_bytes
from inbox_orch.orch.git.repository import Repository
from inbox_orch.orch.git.unfit import NotApplied
from inbox_orch.orch.patches import hand_in
from inbox_orch.orch.patches.examine import examine
from inbox_orch.orch.patches.given import Refused
from inbox_orch.orch.patches.policy import Layer, Policy
from inbox_orch.orch.runs import policies
from support import hostile

CODES = ("patch_format", "patch_does_not_apply", "edit_not_found", "edit_ambiguous")
CASES = hostile.cases()


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> tuple[Repository, str]:
    repository, commit = hostile.repository(tmp_path_factory.mktemp("hostile") / "repository")
    return repository, git_bytes(
        repository.path, "rev-parse", f"{commit}^{{tree}}"
    ).decode().strip()


def content_of(repository: Repository, tree: str, path: str) -> bytes:
    return git_bytes(repository.path, "cat-file", "blob", f"{tree}:{path}")


def judged(repository: Repository, before: str, after: str) -> str:
    """What the built-in policy says of a change, with the rules that say so."""
    built_in = Policy((Layer(policies.BUILT_IN, policies.built_in({})),))
    found = examine(repository, before, after, built_in)
    rules = [each.rule for each in found.objections if each.outcome == found.outcome]
    return " ".join([found.outcome, *rules]) if rules else "taken"


@pytest.mark.parametrize("case", CASES, ids=[f"{c['group']}: {c['name']}" for c in CASES])
def test_what_is_handed_in_comes_to_what_the_table_says(base, case):
    repository, tree = base
    if case["verdict"] in CODES:
        with pytest.raises((NotApplied, Refused)) as refused:
            hand_in.made(repository, tree, hostile.given_by(case))
        said = str(refused.value)
        assert getattr(refused.value, "code", "patch_format") == case["verdict"], said
        assert case["said"] in said
        assert "\n" not in said and len(said) < 1000
        return
    made = hand_in.made(repository, tree, hostile.given_by(case))
    assert judged(repository, tree, made.tree) == case["verdict"]
    assert case.get("noted", "") in "; ".join(made.notes)
    assert bool(made.notes) is ("noted" in case), made.notes
    for path, content in case.get("files", {}).items():
        assert content_of(repository, made.tree, path) == content.encode()


def test_the_table_is_long_enough_and_every_verdict_is_in_it():
    assert len(CASES) >= 80
    assert {case["verdict"].split(" ")[0] for case in CASES} == {*CODES, "taken", "asked", "denied"}
    assert len({(case["group"], case["name"]) for case in CASES}) == len(CASES)
