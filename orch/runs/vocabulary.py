"""The error codes and kinds of events of runs and tasks. Pure."""

from inbox_orch.shared.errors import Code

from .states import ATTEMPT_STATES, RUN_STATES, TASK_STATES

ERRORS = {
    "constraint_weakened": Code(
        2, 30, "a task or a stage allows what its run, or the built-in policy, does not"
    ),
    "cycle": Code(4, 60, "the dependency would close a circle"),
}

STATE_EVENTS = {
    f"{thing}_{state}": thing
    for thing, states in (
        ("run", RUN_STATES),
        ("task", TASK_STATES),
        ("attempt", ATTEMPT_STATES),
    )
    for state in states
}
"""Of each change of a state: whose."""

EVENTS = (
    *STATE_EVENTS,
    "dependency_added",
    "dependency_removed",
    "task_edited",
    "task_removed",
)
