"""Gates in the config of a run: what may be written, and what is said of the rest."""

import textwrap
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inbox_orch.orch.documents.config import read_config
from inbox_orch.orch.gates.built_in import BUILT_IN
from inbox_orch.orch.gates.chosen import gates_of
from inbox_orch.orch.gates.definitions import READERS, Gate
from inbox_orch.orch.runs.config import Config, from_given
from inbox_orch.shared.errors import InboxOrchError

WHOLE = """
    gates:
      lint:  {run: [ruff, check, --output-format=json, .], reads: ruff}
      types: {run: [mypy, .], reads: mypy}
      tests: {run: [pytest, -q, "--junitxml={report}"], reads: junit, timeout_seconds: 15m,
              min_tests: base, strict: true, clean: true}
      build: {run: make all, paths: ["src/**"], mode: warn}
      notes: {run: ./notes, reads: lines, pattern: "TODO", writes: keep}
"""


def read(folder: Path, text: str) -> Config:
    path = folder / "run.yaml"
    path.write_text(textwrap.dedent(text))
    return read_config(str(path))


def test_every_setting_arrives_in_order(tmp_path: Path):
    assert gates_of(read(tmp_path, WHOLE)) == (
        Gate("lint", ("ruff", "check", "--output-format=json", "."), "ruff"),
        Gate("types", ("mypy", "."), "mypy"),
        Gate(
            "tests",
            ("pytest", "-q", "--junitxml={report}"),
            "junit",
            900.0,
            min_tests="base",
            strict=True,
            clean=True,
        ),
        Gate("build", "make all", paths=("src/**",), mode="warn"),
        Gate("notes", "./notes", "lines", pattern="TODO", writes="keep"),
    )


@pytest.mark.parametrize(
    "text",
    [
        "gates: [ruff, pytest]",
        "gates: {ruff: , pytest: }",
        "gates: {ruff: {}, pytest: {}}",
        "gates: {ruff: ruff, pytest: pytest}",
        "gates: [{name: ruff}, pytest]",
    ],
)
def test_built_in_gates_are_named_by_their_names(tmp_path: Path, text: str):
    assert gates_of(read(tmp_path, text)) == (BUILT_IN["ruff"], BUILT_IN["pytest"])


def test_every_built_in_gate_can_be_named(tmp_path: Path):
    text = f"gates: [{', '.join(BUILT_IN)}]"

    assert gates_of(read(tmp_path, text)) == tuple(BUILT_IN.values())


def test_a_built_in_gate_may_have_another_name_and_other_settings(tmp_path: Path):
    text = "gates: {lint: ruff, pytest: {timeout_seconds: 5}, patch-safety: {mode: warn}}"

    assert gates_of(read(tmp_path, text)) == (
        BUILT_IN["ruff"]._replace(name="lint"),
        BUILT_IN["pytest"]._replace(timeout_seconds=5.0),
        BUILT_IN["patch-safety"]._replace(mode="warn"),
    )


def test_a_gate_with_a_command_of_its_own_is_not_the_built_in_one(tmp_path: Path):
    assert gates_of(read(tmp_path, "gates: {pytest: {run: ./t}}")) == (Gate("pytest", "./t"),)


def test_gates_are_in_a_config_only_where_they_are_used(tmp_path: Path):
    assert "gates" not in Config().as_json()
    assert read(tmp_path, "gates: {}") == Config()
    assert read(tmp_path, "gates: {}").canonical() == "{}"


@pytest.mark.parametrize("text", [WHOLE, f"gates: [{', '.join(BUILT_IN)}]"])
def test_gates_come_back_from_what_is_stored_and_from_what_is_exported(tmp_path: Path, text: str):
    import json

    config = read(tmp_path, text)

    assert from_given(json.loads(config.canonical())) == config
    assert read(tmp_path, json.dumps(config.given())) == config


@pytest.mark.parametrize(
    "gate, where, said, instead",
    [
        ("rufff", "", "there is no gate 'rufff' built in", "did you mean `ruff`?"),
        ("zzz", "", "there is no gate 'zzz' built in", "built in are ruff,"),
        ("3", "", "must be a mapping of keys to values", None),
        ("{}", ".run", "is missing", "write `run: …`"),
        ("{run: 3}", ".run", "must be a line for the shell, or a list", "numbers stand in quotes"),
        ("{run: [a, 3]}", ".run", "must be a line for the shell, or a list", None),
        ("{run: []}", ".run", "must be a line for the shell, or a list", None),
        ("{run: ['', a]}", ".run", "the first word is the program", None),
        ("{run: [-x]}", ".run", "the first word is the program", None),
        ("{run: ' '}", ".run", "not blank", None),
        ("{run: a, reads: tap}", ".reads", "must be", None),
        ("{run: a, redas: exit}", ".redas", "there is no such key", "did you mean `reads`?"),
        ("{run: a, reads: junit}", "", "needs a report", "{report}"),
        ("{run: a, reads: lines}", "", "go together", None),
        ("{run: a, pattern: x}", "", "go together", None),
        ("{run: a, reads: lines, pattern: '('}", ".pattern", "no regular expression", None),
        ("{run: a, reads: lines, pattern: ''}", ".pattern", "1 to 1000 characters", None),
        ("{run: a, clean: true, writes: keep}", "", "a folder that goes away", None),
        ("{run: a, min_tests: base}", "", "needs `reads: junit`", None),
        ("{run: a, min_tests: 3}", ".min_tests", "must be", None),
        ("{run: a, timeout_seconds: 0}", ".timeout_seconds", "must be", None),
        ("{run: a, timeout_seconds: soon}", ".timeout_seconds", "a number of seconds", None),
        ("{run: a, paths: src}", ".paths", "must be a list", None),
        ("{run: a, paths: ['']}", ".paths[0]", "a glob is text", None),
        ("{run: a, paths: [/etc]}", ".paths[0]", "from the top of the repository", None),
        ("{run: a, paths: [a/../b]}", ".paths[0]", "from the top of the repository", None),
        ("{run: a, mode: loud}", ".mode", "must be", None),
        ("{run: a, writes: yes}", ".writes", "must be", None),
        ("{run: a, strict: 1}", ".strict", "must be `true` or `false`", None),
    ],
)
def test_what_is_wrong_is_told_with_its_line_and_what_to_write(
    tmp_path: Path, gate: str, where: str, said: str, instead: str | None
):
    with pytest.raises(InboxOrchError) as refused:
        read(tmp_path, f"gates:\n  fine: {{run: x}}\n  mine: {gate}\n")
    (problem,) = refused.value.details["problems"]

    assert refused.value.code == "usage"
    assert (problem["line"], problem["where"]) == (3, f"gates.mine{where}")
    assert said in problem["message"]
    assert instead is None or instead in problem["instead"]


@pytest.mark.parametrize(
    "text, said",
    [
        ("gates: 3", "must be a mapping"),
        ("gates: [3]", "names of built-in gates"),
        ("gates: [{run: a}]", "names of built-in gates"),
        ("gates: [ruff, ruff]", "names 'ruff' twice"),
        ("gates: [rufff]", "there is no gate 'rufff' built in"),
        ("gates: {'a b': {run: x}}", "is not a valid name"),
        ("gates: {" + ", ".join(f"g{n}: {{run: x}}" for n in range(31)) + "}", "30"),
    ],
)
def test_what_is_no_set_of_gates_is_refused(tmp_path: Path, text: str, said: str):
    with pytest.raises(InboxOrchError) as refused:
        read(tmp_path, text)

    assert refused.value.code == "usage"
    assert said in refused.value.message


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.text("[]/{}ab(", max_size=3),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["run", "reads", "paths", "pattern", "name", "ruff", "x"]),
            inner | st.sampled_from([*READERS, "a"]),
            max_size=3,
        )
    ),
    max_leaves=6,
)


@given(value=VALUES)
def test_whatever_is_written_is_a_config_or_an_error_that_says_where(tmp_path_factory, value):
    import json

    path = tmp_path_factory.getbasetemp() / "any.json"
    path.write_text(json.dumps({"gates": value}))
    problems, gates = [{}], ()
    try:
        gates = gates_of(read_config(str(path)))
    except InboxOrchError as refused:
        problems = refused.details["problems"]
    assert problems
    assert all(gate.reads in READERS and gate.name for gate in gates)
