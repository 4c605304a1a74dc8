"""The policies that a document has, each with the name of its layer."""

from typing import Any

from ..runs import plan as plans
from ..runs.policies import RUN, Named
from .config import ConfigPart
from .parts import validated
from .plan import PlanPart
from .policy import MAX_POLICY_BYTES, policy_of
from .problems import Problem
from .reading import Source, read_document


def read_layers(path: str) -> list[Named]:
    """The policies in a file, each with the name of its layer: one by itself, that of a run's
    config, or those of a plan. Errors: `usage` as above, `constraint_weakened` with its line."""
    source = read_document(path, MAX_POLICY_BYTES)
    keys = set(source.value) if isinstance(source.value, dict) else set()
    if "tasks" in keys:
        return _of_plan(source)
    if keys & (set(ConfigPart.model_fields) - {"policy", "submodules"}):
        policy = validated(ConfigPart, source).value().policy
        return [] if policy is None else [(RUN, policy)]
    return [(RUN, policy_of(source))]


def _of_plan(source: Source) -> list[Named]:
    part = validated(PlanPart, source)
    run = None if part.run is None else part.run.value()
    plan = plans.Plan(tuple(task.value() for task in part.tasks), run)
    faults = plans.faults(plan, (), repository=True, config=None if run is None else run.config)
    wrong = [fault for fault in faults if "policy" in fault.path]
    if wrong:
        raise source.refusal([Problem(f.path, f.message, f.instead, f.code) for f in wrong])
    given: list[tuple[str, Any]] = [] if run is None else [(RUN, run.config.policy)]
    given += [(f"task {task.key}", task.policy) for task in plan.tasks]
    return [(name, policy) for name, policy in given if policy is not None]
