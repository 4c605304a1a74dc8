"""Layers of a policy only tighten, each is judged by itself, and what decided is named."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inbox_orch.orch.git.changes import Change, Facts
from inbox_orch.orch.patches import floor
from inbox_orch.orch.patches.brief import told
from inbox_orch.orch.patches.floor import Breach
from inbox_orch.orch.patches.linting import oddities
from inbox_orch.orch.patches.policy import Examined, Layer, Policy, from_canonical
from inbox_orch.orch.patches.rules import Evidence, Finding, approvals_needed, judged
from inbox_orch.orch.runs.policies import (
    ASK_PATHS,
    RULES,
    layers_of,
    loosened,
    of_stages,
    require_tightening,
)
from inbox_orch.orch.views.policies import InForce, of_path, verdict
from inbox_orch.shared.errors import InboxOrchError


def change(path: str, **options) -> Change:
    facts = {
        "status": "M", "old_mode": "100644", "new_mode": "100644", "size": 9, "binary": False,
        "insertions": 1, "deletions": 1,
    } | options  # fmt: skip
    return Change(
        path, None, facts["status"], facts["old_mode"], facts["new_mode"], "1" * 40, "2" * 40,
        facts["size"], facts["binary"], facts["insertions"], facts["deletions"],
        options.get("link_target"),
    )  # fmt: skip


def evidence(*changes: Change, **known) -> Evidence:
    lines = sum(c.insertions for c in changes), sum(c.deletions for c in changes)
    return Evidence(Facts(changes, *lines), **known)


def policy(*layers: dict) -> Policy:
    names = ("run", "task a", "stage b")
    return Policy(tuple(Layer(name, given) for name, given in zip(names, layers, strict=False)))


A, B, DOC = change("src/a.py"), change("src/b.py"), change("docs/a.md")
NEW = change("src/new.py", status="A", old_mode=None)
GONE = change("src/gone.py", status="D", new_mode=None, size=0, insertions=0)
LINK = change("src/link", status="A", old_mode=None, new_mode="120000", link_target="a.py")
SUB = change("sub", status="A", old_mode=None, new_mode="160000", size=0)
RUN = change("run.sh", new_mode="100755")
BINARY = change("logo.png", binary=True)


@pytest.mark.parametrize(
    "given, facts, outcome, said",
    [
        ({"allow_paths": ["src/"]}, evidence(A, DOC), "denied", "docs/a.md may not be changed"),
        ({"allow_paths": ["src/"]}, evidence(A, B), "allowed", None),
        ({"allow_paths": []}, evidence(A), "denied", "allowed is nothing"),
        ({"forbid_paths": ["*.py"]}, evidence(A, B, DOC), "denied", "src/a.py and 1 more"),
        ({"ask_paths": ["docs/"]}, evidence(A, DOC), "asked", "(docs/)"),
        ({"max_files": 1}, evidence(A, B), "denied", "2 files are changed, and at most 1"),
        ({"max_files": 2}, evidence(A, B), "allowed", None),
        ({"max_lines": 3}, evidence(A, B), "denied", "4 lines are changed, and at most 3"),
        ({"max_lines": 4}, evidence(A, B), "allowed", None),
        ({"max_patch_bytes": 9}, evidence(A, text_bytes=10), "denied", "10 bytes of text"),
        ({"max_file_bytes": 8}, evidence(A), "denied", "src/a.py has 9 bytes"),
        ({"binary": "deny"}, evidence(BINARY), "denied", "logo.png is not text"),
        ({"binary": "ask"}, evidence(BINARY), "asked", "logo.png is not text"),
        ({"binary": "allow"}, evidence(BINARY), "allowed", None),
        ({"deletes": "deny"}, evidence(GONE), "denied", "src/gone.py is taken away"),
        ({"renames": "ask"}, evidence(GONE, NEW, renames=(("src/gone.py", "src/new.py"),)),
         "asked", "src/gone.py to src/new.py is renamed"),
        ({"mode_changes": "deny"}, evidence(RUN), "denied", "run.sh becomes executable"),
        ({"mode_changes": "deny"}, evidence(LINK), "allowed", None),
        ({"symlinks": "ask"}, evidence(LINK), "asked", "src/link is a symbolic link"),
        ({"submodules": "deny"}, evidence(SUB), "denied", "sub is a submodule"),
        ({"secrets": "deny"}, evidence(A, secrets=(Finding("npm token", "src/a.py", 3),)),
         "denied", "src/a.py:3 (npm token)"),
        ({"secrets": "allow"}, evidence(A, secrets=(Finding("npm token", "src/a.py", 3),)),
         "allowed", None),
        ({"tests_for": {"src/": "tests/"}}, evidence(A), "denied", "and no test of it (tests/)"),
        ({"tests_for": {"src/": ["tests/", "*_test.py"]}}, evidence(A, change("a_test.py")),
         "allowed", None),
        ({"tests_for": {"src/": "tests/"}}, evidence(A, change("tests/a", new_mode=None)),
         "denied", "no test of it"),
        ({"tests_for": {"src/": "tests/"}}, evidence(DOC), "allowed", None),
        ({"ascii_only": True}, evidence(A, not_ascii=(Finding("added line", "src/a.py", 2),)),
         "denied", "src/a.py:2"),
        ({"issue_ref": True}, evidence(A), "denied", "names an issue"),
        ({"issue_ref": True}, evidence(A, issue=True), "allowed", None),
        ({"issue_ref": True}, evidence(), "allowed", None),
        ({"min_reviewers": 2}, evidence(A), "asked", "2 people have to approve"),
        ({"min_reviewers": 2}, evidence(), "allowed", None),
        ({"history": "keep"}, evidence(A), "allowed", None),
    ],
)  # fmt: skip
def test_each_rule_is_broken_and_kept(given, facts, outcome, said):
    found = judged(policy(given), facts)

    assert {objection.outcome for objection in found} == ({outcome} - {"allowed"})
    for objection in found:
        assert (objection.rule, objection.layer) == (next(iter(given)), "run")
        assert said in objection.text
        assert objection.remedy


def test_every_rule_is_tried_above():
    marks = test_each_rule_is_broken_and_kept.pytestmark[0].args[1]
    assert {name for row in marks for name in row[0]} == set(RULES)


def test_the_strictest_layer_decides_and_is_named():
    layers = policy({"max_lines": 3, "binary": "deny"}, {"max_lines": 2, "binary": "ask"})

    found = judged(layers, evidence(A, B, BINARY))

    assert {o.rule: o.layer for o in found} == {"max_lines": "task a", "binary": "run"}


def test_a_path_has_to_satisfy_every_layer_by_itself():
    layers = policy({"allow_paths": ["src/"]}, {"allow_paths": ["*.py"]})

    found = judged(layers, evidence(A, DOC, change("src/x.c"), change("x.py")))

    assert {o.layer: o.paths for o in found} == {
        "run": ("docs/a.md", "x.py"),
        "task a": ("src/x.c",),
    }


def test_the_gravest_outcome_counts_and_the_floor_is_held_without_a_policy():
    breach = Breach("git_folder", ".git/x", "belongs to git itself")
    found = judged(policy({"ask_paths": ["docs/"], "forbid_paths": ["src/"]}), evidence(A, DOC))
    assert Examined(None, found).outcome == "denied"
    assert "src/" in Examined(None, found).reason and "docs/" not in Examined(None, found).reason

    (floored,) = judged(Policy(), evidence(A, breaches=(breach, breach._replace(path="b"))))
    assert (floored.layer, floored.outcome, floored.paths) == ("floor", "denied", (".git/x", "b"))
    assert judged(Policy(), evidence(A, BINARY, LINK, SUB)) == ()
    (unread,) = judged(Policy(), evidence(unread=("it is too large",)))
    assert (unread.outcome, unread.text) == ("denied", "it could not be judged: it is too large")


def test_so_many_approvals_are_needed_as_the_strictest_layer_says():
    assert approvals_needed(Policy()) == 1
    assert approvals_needed(policy({"min_reviewers": 0}, {"min_reviewers": 3})) == 3


# -- layers --------------------------------------------------------------------------------


def test_the_built_in_layer_is_there_with_the_first_policy_and_the_run_replaces_it():
    assert layers_of(None, ("a", None)) == []
    (built_in,) = layers_of(None, staged=True)
    assert built_in[0] == "built-in" and built_in[1]["symlinks"] == "ask"
    assert tuple(built_in[1]["ask_paths"]) == ASK_PATHS

    layers = layers_of({"symlinks": "allow", "ask_paths": []}, ("a", {"max_files": 3}))

    assert [name for name, _ in layers] == ["built-in", "run", "task a"]
    assert not {"symlinks", "ask_paths"} & set(layers[0][1])
    require_tightening(layers)


@pytest.mark.parametrize(
    "config, task, outer",
    [
        ({"max_lines": 300}, {"max_lines": 301}, "run"),
        ({}, {"max_file_bytes": 10**9}, "built-in"),
        ({}, {"symlinks": "allow"}, "built-in"),
        ({"binary": "deny"}, {"binary": "ask"}, "run"),
        ({"ascii_only": True}, {"ascii_only": False}, "run"),
        ({"min_reviewers": 2}, {"min_reviewers": 1}, "run"),
        ({}, {"history": "keep"}, "built-in"),
        ({"history": "squash"}, {"history": "keep"}, "run"),
    ],
)
def test_a_layer_that_loosens_is_refused_and_both_are_named(config, task, outer):
    with pytest.raises(InboxOrchError) as caught:
        require_tightening(layers_of(config, ("a", task)))

    error = caught.value
    assert (error.code, error.exit_code) == ("constraint_weakened", 2)
    (weakened,) = error.details["weakened"]
    assert (weakened["layer"], weakened["outer"]) == ("task a", outer)
    assert "task a" in error.message and next(iter(task)) in error.message
    assert {"run": "the run", "built-in": "the built-in policy"}[outer] in error.message


def test_stages_tighten_by_themselves_and_not_one_another():
    drawn = (
        '{"stages": [{"id": "x", "policy": {"max_lines": 9}}, {"id": "y"},'
        ' {"id": "z", "policy": {"max_lines": 20}}]}'
    )
    outer = layers_of({"max_lines": 10}, ("a", None))

    (found,) = loosened(outer, of_stages(drawn))

    assert (found.layer, found.outer) == ("stage z", "run")


def test_a_policy_is_one_text_and_known_by_its_digest():
    one = policy({"max_files": 1, "binary": "ask"}, {"allow_paths": ["ä"]})
    other = policy({"binary": "ask", "max_files": 1}, {"allow_paths": ["ä"]})

    assert one.digest == other.digest
    assert from_canonical(one.canonical()) == one
    assert not Policy().is_more_than_the_floor and one.is_more_than_the_floor


@pytest.mark.parametrize(
    "said, keeps",
    [((), False), (("keep",), True), (("keep", "squash"), False), (("squash", "keep"), False)],
)
def test_history_is_kept_only_where_every_layer_lets_it(said, keeps):
    assert policy(*({"history": word} for word in said)).keeps_history is keeps


_WORD = st.sampled_from(["allow", "ask", "deny"])
_PATTERN = st.sampled_from(["src/", "*.py", "/docs/", "a*", "!b*", "**/x"])
_PATTERNS = st.lists(_PATTERN, max_size=3)
_GIVEN = st.fixed_dictionaries(
    {},
    optional={
        "allow_paths": _PATTERNS,
        "forbid_paths": _PATTERNS,
        "ask_paths": _PATTERNS,
        "max_files": st.integers(0, 4),
        "max_lines": st.integers(0, 9),
        "binary": _WORD,
        "deletes": _WORD,
        "symlinks": _WORD,
        "tests_for": st.dictionaries(_PATTERN, _PATTERN, max_size=2),
        "min_reviewers": st.integers(0, 2),
    },
)
_CHANGES = st.lists(
    st.sampled_from([A, B, DOC, GONE, LINK, RUN, BINARY, change("a/x"), change("b.py")]),
    max_size=4,
    unique=True,
)
_GRAVITY = ("allowed", "asked", "denied")


@settings(max_examples=150, deadline=None)
@given(layers=st.lists(_GIVEN, min_size=1, max_size=3), changes=_CHANGES)
def test_no_inner_layer_lets_in_what_an_outer_one_does_not(layers, changes):
    facts = evidence(*changes)
    outcomes = [
        _GRAVITY.index(Examined(None, judged(policy(*layers[: number + 1]), facts)).outcome)
        for number in range(len(layers))
    ]

    assert outcomes == sorted(outcomes)
    alone = [
        _GRAVITY.index(Examined(None, judged(policy(layer), facts)).outcome) for layer in layers
    ]
    assert outcomes[-1] == max(alone)
    found = judged(policy(*layers), facts)
    given_by = {layer.name: layer.given for layer in policy(*layers).layers}
    assert all(objection.rule in given_by[objection.layer] for objection in found)


@settings(max_examples=60, deadline=None)
@given(
    layers=st.lists(
        st.fixed_dictionaries(
            {},
            optional=dict.fromkeys(("allow_paths", "forbid_paths", "ask_paths"), _PATTERNS),
        ),
        max_size=3,
    ),
    path=st.sampled_from(["src/a.py", "docs/a", "a/x", "b.py", "SRC/a"]),
)
def test_what_is_explained_of_a_path_is_what_is_judged_of_it(layers, path):
    run_and_task = policy(*layers[:2])
    judgement = Examined(None, judged(run_and_task, evidence(change(path))))

    assert verdict(of_path(InForce(run_and_task), path)) == judgement.outcome
    staged = InForce(run_and_task, stages=policy({}, {}, *layers[2:]).layers[2:])
    assert verdict(of_path(staged, path)) == judgement.outcome


def test_workers_are_told_what_was_asked_for_and_not_what_is_built_in():
    layers = layers_of(
        {"allow_paths": ["src/"], "max_lines": 9, "binary": "ask", "symlinks": "deny"},
        ("a", {"allow_paths": ["*.py"], "max_lines": 5, "binary": "deny", "issue_ref": True,
               "tests_for": {"src/": ["tests/", "x"]}, "deletes": "ask", "forbid_paths": ["y"]}),
    )  # fmt: skip
    assert told(Policy(tuple(Layer(*named) for named in layers))) == (
        "change nothing but: src/",
        "change nothing but: *.py",
        "do not change: y",
        "at most 5 lines, added and removed together",
        "not allowed: files that are not text, symbolic links",
        "needs approval: deleting files",
        "a change of src/ comes with one of tests/, x",
        "the message of a commit names an issue, like #17",
    )
    assert told(Policy((Layer("built-in", {"ask_paths": ["x"]}),))) == ()


# -- the floor -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path, rules",
    [
        ("a/b.py", set()),
        (".gitignore", set()),
        ("a/.github/x", set()),
        ("legit.git/x", set()),
        (".git/config", {"git_folder"}),
        ("a/.GIT/hooks/x", {"git_folder"}),
        ("a/git~1/x", {"git_folder"}),
        (".git ./x", {"git_folder"}),
        (".git::$INDEX_ALLOCATION/x", {"git_folder"}),
        (".g\u200cit/x", {"git_folder"}),
        ("a\\.git\\x", {"git_folder"}),
        ("../x", {"outside"}),
        ("/etc/passwd", {"outside"}),
        ("C:\\x", {"outside"}),
        ("a/./b", {"outside"}),
        ("a\\..\\..\\b", {"outside"}),
        ("a//b", {"outside"}),
        ("x" * 256, {"name_length"}),
        ("ä" * 128, {"name_length"}),
        ("ab/" * 1400 + "c", {"name_length"}),
    ],
)
def test_names_that_no_change_may_bring_in(path: str, rules: set[str]):
    assert {breach.rule for breach in floor.of_name(path)} == rules


def test_names_that_differ_in_case_alone_collide_also_as_folders():
    present = ["Read.me", "read.me", "src/A.py", "SRC/b.py", "é", "e\u0301", "old", "OLD", "x/y"]

    found = {b.path: b.why for b in floor.collisions(["read.me", "SRC/b.py", "é", "x/y"], present)}

    assert set(found) == {"read.me", "SRC/b.py", "é"}
    assert "src" in found["SRC/b.py"]
    assert list(floor.collisions(["x/y"], ["x/y", "x/z"])) == []


@pytest.mark.parametrize(
    "links, changed, out",
    [
        ({"a": "b"}, {"a"}, set()),
        ({"a": "../x"}, {"a"}, {"a"}),
        ({"d/a": "../x"}, {"d/a"}, set()),
        ({"a": "/etc"}, {"a"}, {"a"}),
        ({"a": ""}, {"a"}, {"a"}),
        ({"a": "x/.GIT/config"}, {"a"}, {"a"}),
        # By way of another link, which leads to the top.
        ({"d/e/l": "../..", "x": "d/e/l/../y"}, {"x"}, {"x"}),
        ({"d/e/l": "../..", "x": "d/e/l/../y"}, {"d/e/l"}, {"x"}),
        ({"d/e/l": "../..", "x": "d/e/l/y"}, {"x"}, set()),
        # One that led out before is not the change's.
        ({"old": "../x", "a": "b"}, {"a"}, set()),
        ({"a": "b", "b": "a"}, {"a", "b"}, set()),
        # It led to the top, by way of a link that has become a folder.
        ({"x": "d/../.."}, {"d", "d/f"}, {"x"}),
    ],
)
def test_links_are_followed_to_where_they_lead(links, changed, out):
    assert {breach.path for breach in floor.led_out(links, changed)} == out


def test_an_endless_target_takes_no_time():
    assert floor.leads_out("a", "b/../" * 10**6)


# -- what is odd ---------------------------------------------------------------------------


def test_what_is_hardly_meant_is_told():
    layers = [
        ("run", {"ask_paths": ["x"], "allow_paths": ["scr/", "a"], "forbid_paths": ["a"]}),
        ("task t", {"allow_paths": [], "max_files": 0}),
    ]

    found = [(each.layer, each.rule) for each in oddities(layers, ["src/a"])]

    assert found == [
        ("run", "ask_paths"),
        ("run", "forbid_paths"),
        ("run", "allow_paths"),
        ("task t", "allow_paths"),
        ("task t", "max_files"),
    ]
    assert oddities([("run", {"max_files": 3})]) == []
