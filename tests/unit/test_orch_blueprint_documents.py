"""Blueprints as documents: what is wrong is told with its line, all at once, whatever it is."""

import json
import os
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from inbox_orch.orch.documents import catalogue
from inbox_orch.orch.documents.blueprint import read_blueprint
from inbox_orch.orch.stages.checking import faults, most_visits
from inbox_orch.orch.stages.model import ROUTES, Blueprint, Stage
from inbox_orch.shared.errors import InboxOrchError

HEAD = "version: 1\nid: mine\nstages:\n"
ONE = f"{HEAD}  - {{id: a, type: agent, goal: Do it.}}\n"


@pytest.fixture
def read(tmp_path: Path):
    def read(text: str) -> Blueprint:
        path = tmp_path / "mine.yaml"
        path.write_text(textwrap.dedent(text))
        return read_blueprint(str(path))

    return read


def problems(read, text: str) -> list[tuple[int, str]]:
    with pytest.raises(InboxOrchError) as caught:
        read(text)
    assert caught.value.code == "usage"
    return [(p["line"], p["message"]) for p in caught.value.details["problems"]]


def test_every_key_is_read(read):
    found = read(
        """\
        version: 1
        id: mine
        title: Title
        max_total_visits: 7
        on_diverging: pause
        stages:
          - {id: pack, type: deterministic, action: build_context_pack, outputs: [pack]}
          - id: a
            type: agentic
            goal: Do it.
            role: builder
            toolset: docs
            writes: false
            reviews: true
            inputs: [pack]
            max_visits: 2
            timeout_seconds: 1h30m
            approval: before
            on_success: check
            on_failure: a
            on_error: paused
            on_skip: done
            on_reject: fail
          - {id: check, type: deterministic, action: run_gates, gates: [lint], on_success: make}
          - {id: make, type: deterministic, run: make all, on_success: ask}
          - {id: ask, type: council, goal: Good?}
        """.replace("outputs: [pack]}", "outputs: [pack], on_success: a}")
    )

    assert found == Blueprint(
        "mine",
        (
            Stage("pack", "deterministic", "build_context_pack", outputs=("pack",), on_success="a"),
            Stage(
                "a", "agent", goal="Do it.", role="builder", toolset="docs", writes=False,
                reviews=True, inputs=("pack",), max_visits=2, timeout_seconds=5400.0,
                approval="before", on_success="check", on_failure="a", on_error="pause",
                on_skip="done", on_reject="fail",
            ),
            Stage("check", "deterministic", "run_gates", gates=("lint",), on_success="make"),
            Stage("make", "deterministic", run="make all", on_success="ask"),
            Stage("ask", "council", goal="Good?"),
        ),
        "Title", 1, 7, "pause",
    )  # fmt: skip


def test_it_may_be_json(tmp_path):
    path = tmp_path / "mine.json"
    stages = [{"id": "a", "type": "agent", "goal": "Do it."}]
    path.write_text(json.dumps({"version": 1, "id": "mine", "stages": stages}))

    assert read_blueprint(str(path)) == Blueprint("mine", (Stage("a", "agent", goal="Do it."),))


def stage(*lines: str) -> str:
    """A blueprint of one stage, with a line for each key."""
    return f"{HEAD}  - " + "\n    ".join(lines) + "\n"


GOOD = ("id: a", "type: agent", "goal: x")
ALONE = "must be a mapping of keys to values, not"


@pytest.mark.parametrize(
    "text, line, message",
    [
        ("", 1, f"{ALONE} nothing"),
        ("- a\n", 1, f"{ALONE} a list"),
        ("version: 1\nid: mine\n", 1, "stages: is missing"),
        ("version: 1\nid: mine\nstages: []\n", 3, "stages: a blueprint has 1 to 10000 stages"),
        ("version: 1\nid: mine\nstages: a\n", 3, "stages: must be a list, not the text 'a'"),
        (ONE.removeprefix("version: 1\n"), 1, "version: is missing"),
        (ONE.replace("1", "2", 1), 1, "version: version 2 is not known here"),
        (ONE.replace("1", "'1'", 1), 1, "version: must be a whole number, not the text '1'"),
        (ONE.replace("1", "true", 1), 1, "version: must be a whole number, not `true`"),
        (ONE + "retry_limit: 3\n", 5, "retry_limit: there is no such key"),
        (ONE + "max_total_visits: 0\n", 5, "max_total_visits: must be 1 to 1000"),
        (ONE + "on_diverging: a\n", 5, "on_diverging: must be `go_on` or `pause`"),
        (ONE + "id: mine\n", 5, "id: the key stands here again, first on line 2"),
        (ONE.replace("mine", "'[/red]'"), 2, "id: '[/red]' cannot be the id of a blueprint"),
        (HEAD + "  - a\n", 4, f"stages[0]: {ALONE} the text 'a'"),
        (stage(*GOOD[1:]), 4, "stages[0].id: is missing"),
        (stage("id: 1", *GOOD[1:]), 4, "stages[0].id: must be text, not the number 1"),
        (stage("id: a", "goal: x"), 4, "stages[0].type: is missing"),
        (
            stage("id: a", "type: robot", "goal: x"),
            5,
            "stages[0].type: must be one of deterministic, agent, council, not 'robot'",
        ),
        (stage(*GOOD, "retry_limit: 2"), 7, "stages[0].retry_limit: there is no such key"),
        (stage(*GOOD[:2]), 4, "stages[0]: has no goal"),
        (
            stage(*GOOD, "writes: 'no'"),
            7,
            "stages[0].writes: must be `true` or `false`, not the text 'no'",
        ),
        (
            stage(*GOOD, "max_visits: 1.5"),
            7,
            "stages[0].max_visits: must be a whole number, not the number 1.5",
        ),
        (
            stage(*GOOD, "timeout_seconds: 0"),
            7,
            "stages[0].timeout_seconds: must be more than 0, and at most 31622400",
        ),
        (stage(*GOOD, "inputs: a"), 7, "stages[0].inputs: must be a list, not the text 'a'"),
        (stage(*GOOD, "on_success: b"), 7, "stages[0].on_success: there is no stage 'b'"),
        (stage(*GOOD, "on_failure: a"), 4, "stages[0]: a -> a can go on for ever"),
        (
            stage(*GOOD) + "  - {id: b, type: agent, goal: x}\n",
            7,
            "stages[1]: no stage leads to it",
        ),
        ("a: [", 2, "it is not YAML: did not find expected node content"),
        ("a: !!map x\n", 1, "the tag tag:yaml.org,2002:map is not read"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(read, text, line, message):
    with pytest.raises(InboxOrchError) as caught:
        read(text)

    (problem,) = caught.value.details["problems"]
    assert (problem["line"], problem["message"]) == (line, message)


def test_everything_that_is_wrong_is_told_at_once(read):
    assert problems(
        read,
        """\
        version: 2
        id: Mine
        titel: x
        on_diverging: 3
        stages:
          - id: a
            type: agent
            on_success: z
          - {id: b, type: deterministic, action: lint, role: x}
          - {id: c, type: agent, goal: [x], on_success: a}
          - {id: a, type: agent, goal: x}
        """,
    ) == [
        (1, "version: version 2 is not known here"),
        (2, "id: 'Mine' cannot be the id of a blueprint"),
        (3, "titel: there is no such key"),
        (4, "on_diverging: must be text, not the number 3"),
        (6, "stages[0]: has no goal"),
        (8, "stages[0].on_success: there is no stage 'z'"),
        (9, "stages[1].action: there is no action 'lint'"),
        (9, "stages[1].role: is for an agent, and this stage is deterministic"),
        (10, "stages[2].goal: must be text, not a list"),
        (11, "stages[3].id: 'a' is the id of stage 1, too"),
    ]


def test_the_nearest_name_is_asked_for(read):
    with pytest.raises(InboxOrchError) as caught:
        read(HEAD + "  - {id: a, type: agent, goal: x, on_success: lnt}\n"
             "  - {id: lint, type: deterministic, action: run_gates}\n")  # fmt: skip

    assert caught.value.hint == "did you mean `lint`?"


def test_an_alias_bomb_is_one_problem(read):
    bomb = ["a: &a [x, x, x, x, x, x, x, x, x, x]"]
    for here, above in zip("bcdefghij", "abcdefghi", strict=True):
        bomb.append(f"{here}: &{here} [{', '.join([f'*{above}'] * 10)}]")
    with pytest.raises(InboxOrchError, match="has more than 5000000 values"):
        read("\n".join(bomb))


def test_a_file_that_is_too_large_or_not_there_is_refused(tmp_path):
    (tmp_path / "large.yaml").write_bytes(b"#" * (4 * 1024 * 1024 + 1))

    with pytest.raises(InboxOrchError, match="more than 4194304 bytes"):
        read_blueprint(str(tmp_path / "large.yaml"))
    with pytest.raises(InboxOrchError, match="cannot read"):
        read_blueprint(str(tmp_path / "missing.yaml"))


def test_ten_thousand_stages_are_read_quickly(read):
    lines = [
        f"  - {{id: s{n}, type: agent, goal: x, on_success: s{n + 1}}}\n" for n in range(9_999)
    ]
    text = HEAD + "".join(lines) + "  - {id: s9999, type: agent, goal: x}\n"
    started = time.process_time()
    found = read(text)
    taken = time.process_time() - started

    assert len(found.stages) == 10_000
    assert taken < 6
    assert [m for _, m in problems(read, text + "  - {id: t, type: agent, goal: x}\n")] == [
        "stages: a blueprint has 1 to 10000 stages",
        "stages[10000]: no stage leads to it",
    ]


# -- Goals in files ------------------------------------------------------------------------


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    top = tmp_path / "project"
    (top / ".git").mkdir(parents=True)
    (top / ".orch" / "blueprints").mkdir(parents=True)
    (top / "goals").mkdir()
    (top / "goals" / "a.md").write_text("Do it well.\n")
    (tmp_path / "secret").write_text("secret")
    return top


def with_goal(repository: Path, goal_file: str, more: str = "") -> Path:
    path = repository / ".orch" / "blueprints" / "mine.yaml"
    stage = f"  - {{id: a, type: agent, goal_file: {json.dumps(goal_file)}{more}}}\n"
    path.write_text(HEAD + stage)
    return path


def test_a_goal_may_stand_in_a_file_of_the_repository(repository):
    path = with_goal(repository, "../../goals/a.md")

    assert read_blueprint(str(path)).stages[0].goal == "Do it well.\n"


@pytest.mark.parametrize(
    "name, said",
    [
        ("../../../secret", "'../../../secret' leads out of "),
        ("../../link", "'../../link' leads out of "),
        ("../../.git/config", "'../../.git/config' leads out of "),
        ("../../.GIT/config", "'../../.GIT/config' leads out of "),
        ("../../missing", "cannot read '../../missing': No such file or directory"),
        ("../../goals", "'../../goals' is no file"),
        ("../../pipe", "'../../pipe' is no file"),
        ("", "'' is no file"),
        ("\0", "cannot read '\\x00': that is no path"),
        ("../../large", "the file has more than 65536 bytes"),
        ("../../binary", "the body is not UTF-8: byte 0 is 0xff"),
        ("../../blank", "must be text, not blank, without NUL"),
    ],
)
def test_a_goal_file_that_cannot_be_the_goal_is_one_problem(repository, name, said):
    (repository / "link").symlink_to(repository.parent / "secret")
    os.mkfifo(repository / "pipe")
    (repository / "large").write_text("x" * 70_000)
    (repository / "binary").write_bytes(b"\xff")
    (repository / "blank").write_text("\n")
    with pytest.raises(InboxOrchError) as caught:
        read_blueprint(str(with_goal(repository, name)))

    (problem,) = caught.value.details["problems"]
    assert said in problem["message"]
    assert problem["line"] == 4


def test_an_absolute_goal_file_and_one_beside_a_goal_are_refused(repository):
    absolute = with_goal(repository, str(repository / "goals" / "a.md"))
    with pytest.raises(InboxOrchError, match="leads out of"):
        read_blueprint(str(absolute))
    with pytest.raises(InboxOrchError, match="stands beside `goal`"):
        read_blueprint(str(with_goal(repository, "../../goals/a.md", ", goal: x")))


def test_outside_of_a_repository_goals_lie_in_the_folder_of_the_blueprint(tmp_path):
    (tmp_path / "lone").mkdir()
    (tmp_path / "lone" / "a.md").write_text("Do it.")
    (tmp_path / "b.md").write_text("Do it.")
    path = tmp_path / "lone" / "mine.yaml"
    path.write_text(HEAD + "  - {id: a, type: agent, goal_file: a.md}\n")
    assert read_blueprint(str(path)).stages[0].goal == "Do it."

    path.write_text(HEAD + "  - {id: a, type: agent, goal_file: ../b.md}\n")
    with pytest.raises(InboxOrchError, match="leads out of"):
        read_blueprint(str(path))


def test_all_goals_together_are_bounded(repository):
    (repository / "big").write_text("x" * 60_000)
    path = with_goal(repository, "")
    stages = "".join(
        f"  - {{id: s{n}, type: agent, goal_file: ../../big, on_success: s{n + 1}}}\n"
        for n in range(80)
    )
    path.write_text(HEAD + stages + "  - {id: s80, type: agent, goal: x}\n")
    with pytest.raises(InboxOrchError, match="all goals together have more than 4194304 bytes"):
        read_blueprint(str(path))


# -- Which one is meant --------------------------------------------------------------------


@pytest.mark.parametrize("name, most", [("standard_task", 12), ("quick_fix", 3), ("study_task", 8)])
def test_a_native_one_has_no_faults_and_a_bound(tmp_path, name, most):
    found = catalogue.find(name, str(tmp_path))

    assert found.id == name
    assert found.title
    assert faults(found) == []
    assert most_visits(found) == most
    for stage in found.stages:
        assert stage.type == "deterministic" or 40 < len(stage.goal or "") < 500


def test_the_native_ones_are_all_that_lie_in_the_package():
    files = Path(catalogue.find.__globals__["_native_file"]("x")).parent.iterdir()

    assert sorted(path.stem for path in files) == sorted(catalogue.NATIVE)


def test_reviews_never_write_and_repairs_are_bounded(tmp_path):
    for name in catalogue.NATIVE:
        for stage in catalogue.find(name, str(tmp_path)).stages:
            assert not (stage.reviews and stage.writes)
            assert stage.max_visits or not stage.id.startswith("fix")


def own(repository: Path, name: str, text: str) -> Path:
    path = repository / ".orch" / "blueprints" / name
    path.write_text(text)
    return path


def test_a_name_means_the_repositorys_own_from_any_folder_in_it(repository):
    own(repository, "mine.yaml", ONE)
    (repository / "deep" / "er").mkdir(parents=True)

    assert catalogue.find("mine", str(repository / "deep" / "er")).id == "mine"


def test_a_path_means_the_file(repository):
    path = own(repository, "other.yml", ONE)

    assert catalogue.find(str(path), "/").id == "mine"
    assert catalogue.find(".orch/blueprints/other.yml", str(repository)).id == "mine"
    with pytest.raises(InboxOrchError, match="cannot read"):
        catalogue.find("other.yml", str(repository))


@pytest.mark.parametrize("name", catalogue.NATIVE)
def test_the_id_of_a_native_one_is_taken(repository, name):
    path = own(repository, "mine.yaml", ONE.replace("mine", name))

    with pytest.raises(InboxOrchError, match=f"'{name}' is the id of a blueprint that comes"):
        catalogue.find(str(path), "/")
    with pytest.raises(InboxOrchError, match=f"'{name}' is the id of a blueprint that comes"):
        catalogue.find("mine", str(repository))
    # Where one of the repository could be called so, the native one is meant.
    own(repository, f"{name}.yaml", ONE.replace("mine", name))
    assert catalogue.find(name, str(repository)).title != ""


@pytest.mark.parametrize(
    "name, hint",
    [
        ("quick-fix", "did you mean quick_fix?"),
        ("min", "did you mean mine?"),
        ("", "`orch blueprint list`"),
        ("[red]", "`orch blueprint list`"),
        ("\x1b\0", "`orch blueprint list`"),
        ("yours", "yours.yml yours.yaml"),
    ],
)
def test_a_name_that_means_nothing_is_not_found(repository, name, hint):
    own(repository, "mine.yaml", ONE)
    own(repository, "yours.yml", ONE)
    with pytest.raises(InboxOrchError) as caught:
        catalogue.find(name, str(repository))

    assert caught.value.code == "not_found"
    assert hint in str(caught.value.hint)
    assert caught.value.message.isprintable()


def test_a_file_is_called_as_its_blueprint_is(repository):
    own(repository, "yours.yaml", ONE)
    with pytest.raises(InboxOrchError, match="has the id 'mine'"):
        catalogue.find("yours", str(repository))


def test_all_are_listed_with_what_is_wrong_with_them(repository):
    own(repository, "mine.yaml", ONE)
    own(repository, "bad.yaml", ONE.replace("goal", "gaol"))
    os.mkfifo(repository / ".orch" / "blueprints" / "pipe.yaml")
    found = catalogue.entries(str(repository))

    assert [(e.id, e.source, e.blueprint is None) for e in found] == [
        *((name, "native", False) for name in catalogue.NATIVE),
        ("bad", "repository", True),
        ("mine", "repository", False),
    ]
    assert "gaol" in str(found[3].error)
    assert len(catalogue.entries(str(repository.parent))) == len(catalogue.NATIVE)


# -- Whatever it is ------------------------------------------------------------------------

WORDS = st.sampled_from(
    ["a", "b", "agent", "council", "deterministic", "done", "pause", "run_gates", "[/red]", "\x1b",
     "x" * 99, "", "1", "no", "work", "../x", "\ud7ff"]
)  # fmt: skip
SCALARS = st.one_of(
    WORDS, st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)
)
ANY = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(WORDS, inner, max_size=3)),
    max_leaves=8,
)
KEYS = st.sampled_from([*Stage._fields, "goal_file", "version", "on_always"])
STAGES = st.builds(
    lambda plain, given: {**plain, **given},
    st.fixed_dictionaries({"id": WORDS, "type": WORDS, "goal": WORDS}),
    st.dictionaries(KEYS, st.one_of(WORDS, ANY), max_size=3),
)
WHOLE = st.builds(
    lambda plain, given: {**plain, **given},
    st.fixed_dictionaries(
        {"version": st.just(1), "id": st.just("mine"), "stages": st.lists(STAGES, max_size=4)}
    ),
    st.dictionaries(st.sampled_from([*Blueprint._fields, "x"]), ANY, max_size=1),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("blueprints")


def judged(path: Path) -> None:
    try:
        found = read_blueprint(str(path))
    except InboxOrchError as error:
        refused = error
    else:
        assert faults(found) == []
        assert 0 <= most_visits(found) <= found.max_total_visits
        assert all(s.target(route) for s in found.stages for route in ROUTES)
        return
    assert refused.code == "usage"
    assert refused.message.isprintable()
    for problem in refused.details["problems"]:
        assert problem["message"].isprintable()
        assert problem["line"] >= 1


@settings(max_examples=150, deadline=None)
@given(value=st.one_of(WHOLE, ANY))
def test_no_shape_ends_in_a_traceback(folder, value: Any):
    path = folder / "any.yaml"
    path.write_text(yaml.safe_dump(value, allow_unicode=False))
    judged(path)


@settings(max_examples=60, deadline=None)
@given(
    content=st.one_of(
        st.binary(max_size=40), st.text("-:{}[]&*!|>'\"#\n a1", max_size=40).map(str.encode)
    )
)
def test_no_bytes_end_in_a_traceback(folder, content: bytes):
    path = folder / "bytes.yaml"
    path.write_bytes(content)
    judged(path)
