"""Plans as documents: what is written reads back equal, whatever text is in it; what is wrong is
told with its line."""

import contextlib
import json
import textwrap
from pathlib import Path

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from inbox_orch.orch.documents.plan import read_plan
from inbox_orch.orch.documents.reading import read_document
from inbox_orch.orch.documents.writing import plan_as_json, write_json, write_yaml
from inbox_orch.orch.runs.config import FINDS, Config, NoAnswer, Setup
from inbox_orch.orch.runs.model import Limits
from inbox_orch.orch.runs.plan import Link, Opening, Plan, TaskSpec
from inbox_orch.orch.runs.role import Role
from inbox_orch.shared.errors import InboxOrchError

TRICKY = (
    "yes", "no", "on", "y", "null", "~", "true", "1e3", "0x1f", "012", "1:30", "2026-01-01", "-",
    "- a", "a: b", "a #b", "#", "*a", "&a", "!x", "%", "@", "`", "{", "[", "'", '"', "<<", "=",
    " a", "a ", "a\\", "é", "e\u0301", "\U0001f600", "日本", "\u202eabc", "\u200b", "\ufeffx",
    "\u2028", "\x85", "\xa0", "x\ufffe", "...", "---", ".5", "1_000", "!!str a", "key: [", "?",
)  # fmt: skip
TEXTS = st.one_of(
    st.sampled_from(TRICKY),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40),
)
TITLES = TEXTS.map(
    lambda text: "".join(c for c in text if ord(c) >= 32 and ord(c) != 127)[:40]
).filter(str.strip)
BODIES = st.one_of(
    st.just(""),
    TEXTS,
    st.lists(TEXTS, max_size=5).map("\n".join),
    st.lists(TEXTS, max_size=5).map("\n".join).map(lambda text: text + "\n"),
)
KEYS = st.from_regex(r"[a-z0-9][a-z0-9_-]{0,8}", fullmatch=True)
SECONDS = st.one_of(st.none(), st.integers(1, 10**6), st.floats(1, 1e6))
LIMITS = st.builds(Limits, SECONDS, SECONDS, SECONDS, SECONDS, SECONDS)
COMMANDS = st.lists(BODIES.filter(str.strip), max_size=3).map(tuple)

ROLES = st.sampled_from(
    [
        Role("m"),
        Role("on", adapter="codex", toolset="readonly", model="1e3"),
        Role(command=("sh", "-c", "a: b # no", "~")),
    ]
)
POLICIES = st.sampled_from(
    [
        None,
        {},
        {"allow_paths": ["src/**", "!no #"], "max_lines": 3, "symlinks": "ask", "ascii_only": True},
        {"forbid_paths": [], "tests_for": {"no": "yes", "*": ["on", "{"]}, "max_files": 0},
    ]
)


@st.composite
def plans(draw) -> Plan:
    keys = draw(st.lists(KEYS, unique=True, max_size=6))
    tasks = []
    for number, key in enumerate(keys):
        earlier = st.sampled_from(keys[:number]) if number else st.nothing()
        upstream = draw(st.lists(earlier, unique=True, max_size=3)) if number else []
        conditions = st.sampled_from(["success", "finished", "failed"])
        tasks.append(
            TaskSpec(
                key,
                draw(TITLES),
                draw(BODIES),
                draw(st.one_of(st.none(), st.sampled_from(["no", "1", "w.x"]))),
                draw(st.sampled_from(["code", "yes", "7"])),
                tuple(Link(name, draw(conditions)) for name in upstream),
                draw(st.integers(-1000, 1000)),
                draw(st.one_of(st.none(), st.integers(1, 100))),
                draw(st.one_of(st.none(), st.integers(1, 100))),
                draw(st.booleans()),
                draw(st.booleans()),
                draw(st.one_of(st.none(), COMMANDS)),
                draw(LIMITS),
                draw(st.sampled_from([None, '{"type":"object","title":"no"}'])),
                draw(st.sampled_from([None, False, True])),
                policy=draw(POLICIES),
            )
        )
    opening = st.builds(
        Opening,
        TITLES,
        st.one_of(st.none(), TITLES),
        st.sampled_from(["continue", "fail-fast", "abort"]),
        st.one_of(st.none(), st.integers(1, 1000)),
        st.booleans(),
        st.builds(
            Config,
            setup=st.one_of(st.none(), st.builds(Setup, BODIES.filter(str.strip), st.floats(1, 9))),
            limits=LIMITS,
            checks=COMMANDS,
            environment=st.dictionaries(st.sampled_from(["A", "no", "NULL"]), BODIES, max_size=2),
            mailboxes=st.dictionaries(st.sampled_from(["on", "1e3"]), st.integers(1, 9)),
            lfs=st.sampled_from(["skip", "smudge"]),
            copy=st.sampled_from([(), (".env", "a b/no", "\u00e9")]),
            secrets=st.sampled_from([(), ("A", "NO")]),
            max_attempts=st.integers(1, 9),
            max_infra_attempts=st.integers(1, 9),
            submodules=st.booleans(),
            cancel_grace_seconds=st.floats(0, 9),
            harvest=st.booleans(),
            notify=COMMANDS,
            gates=st.sampled_from([(), ({"name": "no", "run": ["a", "b"]},)]),
            roles=st.dictionaries(st.sampled_from(["yes", "r"]), ROLES, max_size=2),
            finds=st.sampled_from([FINDS, (), ("gates",)]),
            policy=POLICIES,
            decisions=st.sampled_from([NoAnswer(), NoAnswer("abandon", 60.0)]),
        ),
    )
    return Plan(tuple(tasks), draw(st.one_of(st.none(), opening)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("plans")


@settings(max_examples=60, deadline=None)
@given(plan=plans())
@example(plan=Plan(tuple(TaskSpec(f"t{n}", t, t) for n, t in enumerate(TRICKY) if t.strip()
                         and t.isprintable())))  # fmt: skip
def test_what_is_written_reads_back_equal_in_both_formats(folder, plan):
    for name, text in (("plan.yaml", write_yaml(plan)), ("plan.json", write_json(plan))):
        path = folder / name
        path.write_bytes(text.encode())
        assert read_plan(str(path))[0] == plan
    # Other readers of YAML, who go by version 1.1, see the same.
    assert yaml.safe_load(write_yaml(plan)) == plan_as_json(plan)


@settings(max_examples=60, deadline=None)
@given(text=st.one_of(BODIES, st.text(st.sampled_from(" \n\t:#-'\"a|>\r"), max_size=12)))
def test_any_text_survives_as_key_entry_and_value(folder, text):
    plan = Plan((TaskSpec("a", "t", text, checks=(text,) if text.strip() else ()),))
    path = folder / "text.yaml"
    path.write_bytes(write_yaml(plan).encode())

    assert read_plan(str(path))[0] == plan


@settings(max_examples=200, deadline=None)
@given(text=st.text(st.sampled_from("{}[],:\"'\\\n ab01-*&!|>#%?@"), max_size=60))
def test_no_text_makes_the_reader_fail_otherwise_than_with_an_error(folder, text):
    for name in ("any.yaml", "any.json"):
        path = folder / name
        path.write_text(text)
        with contextlib.suppress(InboxOrchError):
            json.dumps(read_document(str(path), 1000).value)


def read(tmp_path: Path, text: str, name: str = "plan.yaml") -> Plan:
    (tmp_path / name).write_text(textwrap.dedent(text))
    return read_plan(str(tmp_path / name))[0]


def problems(tmp_path: Path, text: str, name: str = "plan.yaml") -> list[tuple[int, str]]:
    with pytest.raises(InboxOrchError) as raised:
        read(tmp_path, text, name)
    assert raised.value.code == "usage"
    return [(p["line"], p["message"]) for p in raised.value.details["problems"]]


def test_a_plan_may_say_little_or_much(tmp_path):
    plan = read(
        tmp_path,
        """\
        tasks:
          - {task: a, title: yes}
          - task: b
            title: Second
            body: |
              Two
              lines
            depends_on: [a]
          - task: c
            title: Third
            depends_on:
              - b
              - {task: a, when: finished}
        """,
    )

    first, second, third = plan.tasks
    assert first == TaskSpec("a", "yes")
    assert (second.body, second.depends_on) == ("Two\nlines\n", (Link("a"),))
    assert third.depends_on == (Link("b"), Link("a", "finished"))


def test_every_problem_of_a_plan_has_its_line(tmp_path):
    found = problems(
        tmp_path,
        """\
        tasks:
          - task: A
            title: Upper case
          - task: b
            titel: x
          - task: c
            title: C
            priority: 5000
            depends_on:
              - {task: a, when: later}
              - 7
        taks: []
        """,
    )

    assert [line for line, _ in found] == [2, 4, 5, 8, 10, 11, 12]
    assert "cannot be the key of a task" in found[0][1]
    assert found[1][1] == "tasks[1].title: is missing"
    assert "1000" in found[3][1]
    assert found[4][1].startswith("tasks[2].depends_on[0].when: must be 'success'")


def test_problems_of_json_have_their_lines_too(tmp_path):
    text = '{"tasks": [\n {"task": "a",\n  "title": 7},\n {"task": "b"}\n]}'

    assert problems(tmp_path, text, "plan.json") == [
        (3, "tasks[0].title: must be text, not the number 7"),
        (4, "tasks[1].title: is missing"),
    ]


@pytest.mark.parametrize("text", ["", "tasks: 7", "[]", "7", "null"])
def test_what_is_no_plan_is_refused(tmp_path, text):
    assert len(problems(tmp_path, text)) == 1


def test_of_very_many_problems_the_first_are_told_and_the_rest_counted(tmp_path):
    text = "tasks:\n" + "".join(f"- {{task: T{n}, title: x}}\n" for n in range(500))
    with pytest.raises(InboxOrchError) as raised:
        read(tmp_path, text)

    assert raised.value.message.startswith(str(tmp_path / "plan.yaml") + " has 500 problems")
    assert len(raised.value.details["problems"]) == 50
    assert raised.value.details["problem_count"] == 500
