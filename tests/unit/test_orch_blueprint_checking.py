"""Which blueprints can be gone by: every fault is told, and what has none always ends."""

import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inbox_orch.orch.stages.checking import MOST_STAGES, Fault, faults, most_visits
from inbox_orch.orch.stages.loops import counted, loop_of
from inbox_orch.orch.stages.model import ENDS, ROUTES, Blueprint, Stage, from_canonical

NOT_OF_GATES = "is for an agent, and this stage is deterministic"
NOT_OF_AGENTS = "is for deterministic work, and this stage is agent"
NOT_OF_COUNCILS = "is for an agent, and this stage is council"
NO_COMMAND = "a command is a shell command of 1 to 16384 bytes, not blank"
NO_TYPE = "must be one of deterministic, agent, council, not 'robot'"
SECONDS = "must be more than 0, and at most 31622400"


def gate(name: str, **keys) -> Stage:
    return Stage(name, "deterministic", action="run_gates", **keys)


def agent(name: str, **keys) -> Stage:
    return Stage(name, "agent", **{"goal": "Do it.", **keys})


def blueprint(*stages: Stage, **keys) -> Blueprint:
    return Blueprint("mine", stages, **keys)


def told(found: list[Fault]) -> list[tuple[str | None, str | None, str]]:
    return [(fault.stage, fault.key, fault.text) for fault in found]


REPAIR = blueprint(
    agent("implement", on_success="check"),
    gate("check", on_failure="fix"),
    agent("fix", max_visits=2, on_success="check"),
)
STANDARD = blueprint(
    Stage("gather", "deterministic", action="build_context_pack", on_success="implement"),
    agent("implement", max_visits=3, on_success="lint", on_failure="implement"),
    gate("lint", on_success="test", on_failure="fix_lint"),
    agent("fix_lint", max_visits=2, on_success="lint"),
    gate("test", on_success="review", on_failure="fix_tests"),
    agent("fix_tests", max_visits=2, on_success="lint"),
    agent("review", writes=False, reviews=True, max_visits=2, on_failure="implement"),
)


@pytest.mark.parametrize("good", [REPAIR, STANDARD, blueprint(agent("a"))])
def test_a_good_one_has_no_faults(good):
    assert faults(good) == []
    assert from_canonical(good.canonical()) == good


@pytest.mark.parametrize(
    "stage, key, text",
    [
        (gate("a", goal="x"), "goal", NOT_OF_GATES),
        (gate("a", role="x"), "role", NOT_OF_GATES),
        (gate("a", toolset="x"), "toolset", NOT_OF_GATES),
        (gate("a", writes=False), "writes", NOT_OF_GATES),
        (gate("a", reviews=True), "reviews", NOT_OF_GATES),
        (gate("a", run="make"), "run", "has `action` as well as `run`"),
        (Stage("a", "deterministic"), None, "has neither `action` nor `run`"),
        (Stage("a", "deterministic", run=" "), "run", NO_COMMAND),
        (Stage("a", "deterministic", run="x" * 17_000), "run", NO_COMMAND),
        (agent("a", role="a b"), "role", "role 'a b' is not a valid name"),
        (agent("a", toolset=""), "toolset", "toolset '' is not a valid name"),
        (agent("a", inputs=("[/red]",)), "inputs", "the name '[/red]' is not a valid name"),
        (agent("a", outputs=("x", "x")), "outputs", "names 'x' twice"),
        (agent("a", inputs=("x",) * 101), "inputs", "has more than 100 names"),
        (Stage("a", "deterministic", action="x"), "action", "there is no action 'x'"),
        (gate("a", on_reject="done"), "on_reject", "only a review rejects"),
        (gate("a", gates=()), "gates", "is empty"),
        (gate("a", gates=("t", "t")), "gates", "names 't' twice"),
        (
            Stage("a", "deterministic", action="run_tests", gates=("t",)),
            "gates",
            "only `action: run_gates` names its gates",
        ),
        (agent("a", gates=("t",)), "gates", "only `action: run_gates` names its gates"),
        (Stage("a", "agent"), None, "has no goal"),
        (Stage("a", "council"), None, "has no goal"),
        (agent("a", goal=" \n"), "goal", "must be text, not blank, without NUL"),
        (agent("a", goal="x" * 70_000), "goal", "has more than 65536 bytes"),
        (agent("a", action="run_gates"), "action", NOT_OF_AGENTS),
        (agent("a", run="make"), "run", NOT_OF_AGENTS),
        (agent("a", on_reject="pause"), "on_reject", "only a review rejects"),
        (agent("a", reviews=True), "reviews", "a review does not change what it judges"),
        (Stage("a", "council", goal="x", toolset="t"), "toolset", NOT_OF_COUNCILS),
        (Stage("a", "council", goal="x", writes=False), "writes", NOT_OF_COUNCILS),
        (Stage("a", "robot", goal="x"), "type", NO_TYPE),
        (agent("a", max_visits=0), "max_visits", "must be 1 to 1000"),
        (agent("a", max_visits=1001), "max_visits", "must be 1 to 1000"),
        (agent("a", timeout_seconds=0.0), "timeout_seconds", SECONDS),
        (agent("a", timeout_seconds=float("nan")), "timeout_seconds", SECONDS),
        (agent("a", approval="maybe"), "approval", "must be one of none, before, after"),
        (agent("a", on_skip="b"), "on_skip", "there is no stage 'b'"),
        (agent("a", on_success="work"), "on_success", "there is no stage 'work'"),
    ],
)  # fmt: skip
def test_a_stage_that_is_wrong_is_named_with_its_key(stage, key, text):
    found = faults(blueprint(stage))

    assert told(found) == [("a", key, text)]
    assert found[0].place == 0


@pytest.mark.parametrize("name", ["work", "surroundings", "done", "fail", "pause", "decision"])
def test_names_that_mean_something_else_are_refused(name):
    assert told(faults(blueprint(agent(name)))) == [
        (name, "id", f"'{name}' is a name that orch uses itself")
    ]


@pytest.mark.parametrize("name", ["", "A", "[/red]", "a b", "x" * 41, "\x1b[31m", "a/b", "..", "é"])
def test_names_follow_the_rule_of_task_keys(name):
    (fault,) = faults(blueprint(agent(name)))

    assert (fault.stage, fault.key) == (name, "id")
    assert fault.text.endswith(" cannot be the id of a stage")
    assert fault.text.isprintable()
    assert told(faults(blueprint(agent("a"))._replace(id=name)))[0][1] == "id"


def test_the_second_of_two_with_one_id_is_named():
    found = faults(blueprint(agent("a"), agent("b"), agent("a")))

    assert [(fault.place, fault.text) for fault in found] == [
        (2, "'a' is the id of stage 1, too"),
    ]


@pytest.mark.parametrize(
    "keys, key",
    [
        ({"version": 2}, "version"),
        ({"max_total_visits": 0}, "max_total_visits"),
        ({"max_total_visits": 1001}, "max_total_visits"),
        ({"on_diverging": "stop"}, "on_diverging"),
        ({"title": "a\nb"}, "title"),
    ],
)
def test_what_is_wrong_with_the_whole_has_no_stage(keys, key):
    assert [(fault.stage, fault.key) for fault in faults(blueprint(agent("a"), **keys))] == [
        (None, key)
    ]


def test_no_stages_and_too_many_are_refused():
    wrong = (None, "stages", "a blueprint has 1 to 10000 stages")
    many = [agent(f"s{n}", on_success=f"s{n + 1}") for n in range(MOST_STAGES)]

    assert told(faults(blueprint())) == [wrong]
    assert told(faults(blueprint(*many, agent(f"s{MOST_STAGES}")))) == [wrong]


def test_all_texts_together_are_bounded():
    stages = [agent(f"s{n}", goal="x" * 60_000, on_success=f"s{n + 1}") for n in range(70)]

    assert told(faults(blueprint(*stages, agent("s70")))) == [
        (None, "stages", "all goals together have more than 4194304 bytes")
    ]


def test_what_no_stage_leads_to_is_named():
    found = faults(blueprint(agent("a"), agent("b", on_success="c"), agent("c")))

    assert told(found) == [
        ("b", None, "no stage leads to it"),
        ("c", None, "no stage leads to it"),
    ]


@pytest.mark.parametrize("route", ROUTES[:-1])
def test_any_route_leads_somewhere(route):
    assert faults(blueprint(agent("a", **{route: "b"}), agent("b"))) == []


def test_a_reject_leads_somewhere_only_from_a_review():
    review = agent("a", writes=False, reviews=True, on_reject="b")

    assert faults(blueprint(review, agent("b"))) == []


def test_without_a_way_to_done_it_is_refused():
    only_fails = agent("a", on_success="fail")
    found = faults(blueprint(agent("s", on_success="done", on_failure="a"), only_fails))

    assert told(found) == [("a", "on_success", "no way leads from it to `done`")]
    # Somebody who is asked may accept.
    assert faults(blueprint(agent("a", on_success="pause"))) == []


@pytest.mark.parametrize(
    "stages, way, agents",
    [
        ([agent("a", on_success="b"), agent("b", on_failure="a")], "a -> b -> a", True),
        ([agent("a", on_failure="a")], "a -> a", True),
        ([agent("a", on_success="b"), gate("b", on_error="a")], "a -> b -> a", True),
        ([agent("a", on_success="b"), gate("b", on_skip="a")], "a -> b -> a", True),
        ([gate("a", on_failure="b"), gate("b", on_success="a")], "a -> b -> a", False),
        ([gate("a", on_failure="a", max_visits=2)], "a -> a", False),
    ],
)
def test_a_loop_that_nothing_bounds_is_shown(stages, way, agents):
    (fault,) = faults(blueprint(*stages))

    assert fault.text.startswith(f"{way} can go on for ever")
    assert fault.text.endswith(", with no agent in it") != agents
    assert "max_visits" in str(fault.instead)


def test_a_skipped_stage_goes_on_as_after_success_and_may_close_a_loop():
    (fault,) = faults(blueprint(agent("a", on_success="a", on_skip="done")))
    assert fault.text == "a -> a can go on for ever"
    (fault,) = faults(blueprint(agent("a", on_success="done", on_skip="a")))
    assert fault.text == "a -> a can go on for ever"


def test_a_loop_is_bounded_by_a_council_too():
    council = Stage("ask", "council", goal="Good?", max_visits=2, on_failure="a")

    assert faults(blueprint(agent("a", on_success="ask"), council)) == []


def test_every_loop_that_nothing_bounds_is_told_and_long_ones_are_cut():
    long = [agent(f"s{n}", on_success=f"s{n + 1}") for n in range(20)]
    ring = [*long, agent("s20", on_success="t", on_failure="s0"), agent("t", on_failure="t")]

    found = faults(blueprint(*ring))

    assert [fault.stage for fault in found] == ["s20", "t"]
    assert (
        found[0].text
        == "s0 -> s1 -> s2 -> s3 -> s4 -> s5 -> s6 -> s7 -> … -> s0 can go on for ever"
    )


def test_all_faults_are_told_at_once_in_the_order_of_the_stages():
    found = faults(
        Blueprint(
            "Mine",
            (agent("a", goal=None, max_visits=0), gate("b", on_success="x", role="r")),
            version=3,
        )
    )

    assert [(fault.place, fault.key) for fault in found] == [
        (None, "version"), (None, "id"), (0, None), (0, "max_visits"), (1, "role"),
        (1, "on_success"),
    ]  # fmt: skip


# -- How often -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given, most",
    [
        (blueprint(agent("a")), 1),
        (blueprint(gate("a")), 0),
        (REPAIR, 3),
        (STANDARD, 12),
        (STANDARD._replace(max_total_visits=5), 5),
        (STANDARD._replace(max_total_visits=1000), 35),
        (blueprint(agent("a", on_failure="b"), agent("b")), 2),
        (blueprint(agent("a", on_failure="a", max_visits=4)), 4),
    ],
)
def test_the_bound_is_what_follows_from_the_stages(given, most):
    assert faults(given) == []
    assert most_visits(given) == most


def test_a_repair_counts_in_the_innermost_loop_that_it_closes():
    assert loop_of(STANDARD, "fix_lint") == {"lint", "fix_lint"}
    assert loop_of(STANDARD, "fix_tests") == {"lint", "fix_lint", "test", "fix_tests"}
    assert loop_of(STANDARD, "implement") == {"implement"}
    assert loop_of(STANDARD, "review") == {stage.id for stage in STANDARD.stages[1:]}
    assert loop_of(STANDARD, "gather") == {"gather"}


@pytest.mark.parametrize(
    "history, number",
    [
        ("", 0),
        ("implement lint", 0),
        ("implement lint fix_lint lint", 1),
        ("implement lint fix_lint lint fix_lint lint", 2),
        ("implement lint fix_lint lint test fix_tests lint", 0),
        ("implement lint fix_lint lint fix_lint lint decision lint", 0),
    ],
)
def test_it_counts_from_the_last_entry_into_its_loop(history, number):
    assert counted(history.split(), "fix_lint", loop_of(STANDARD, "fix_lint")) == number


@st.composite
def blueprints(draw) -> Blueprint:
    names = [f"s{n}" for n in range(draw(st.integers(1, 7)))]
    targets = st.sampled_from([*names, *names, *ENDS, None])
    stages = []
    for name in names:
        keys = {route: draw(targets) for route in ROUTES[:-1]}
        if draw(st.booleans()):
            keys["max_visits"] = draw(st.sampled_from([1, 2, 3]))
        stages.append(agent(name, **keys) if draw(st.integers(0, 2)) else gate(name, **keys))
    return blueprint(*stages, max_total_visits=1000)


def walk(given: Blueprint, chance: random.Random) -> int:
    """How many visits of agents there are on a random way through, by the rules of the bound."""
    history: list[str] = []
    visits = 0
    here = given.first
    while here not in ENDS:
        stage = given.by_id[here]
        if counted(history, here, loop_of(given, here)) == (stage.max_visits or 1001):
            return visits
        history.append(here)
        visits += stage.type == "agent"
        assert visits <= 1000, "it does not end"
        here = stage.target(chance.choice(ROUTES[:-1]))
    return visits


@settings(max_examples=150, deadline=None)
@given(given=blueprints(), seed=st.integers(0, 1000))
def test_whatever_happens_a_blueprint_without_faults_ends_within_its_bound(given, seed):
    ways = [f for f in faults(given) if "for ever" in f.text or f.place is None]
    if not ways:
        chance = random.Random(seed)
        assert max(walk(given, chance) for _ in range(5)) <= most_visits(given)


@pytest.mark.parametrize("kind", ["chain", "ring", "nested", "twins"])
def test_ten_thousand_stages_are_checked_in_no_time(kind):
    most = MOST_STAGES
    onward = [f"s{n + 1}" for n in range(most - 1)] + ["done"]
    if kind == "twins":
        stages = [
            agent(f"s{n}", on_success=onward[n], on_failure=f"s{n}", max_visits=2)
            for n in range(most)
        ]
    else:
        stages = [agent(f"s{n}", on_success=onward[n]) for n in range(most)]
    if kind == "ring":
        stages[-1] = agent(stages[-1].id, on_failure="s0")
    if kind == "nested":
        stages = [
            agent(f"s{n}", on_success=onward[n], on_failure="s0", max_visits=2) for n in range(most)
        ]
    started = time.process_time()
    found = faults(blueprint(*stages))
    bound = most_visits(blueprint(*stages))
    taken = time.process_time() - started

    assert [fault.stage for fault in found] == (["s9999"] if kind == "ring" else [])
    assert bound == 12
    assert taken < 1
