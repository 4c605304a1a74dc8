"""The config of a run: what its worktrees get, its tasks' defaults, its secrets.

Pure: a frozen value and its one form as JSON. How a file becomes one is the affair of
`documents`.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..git.masking import MASK, masked
from .limits import CANCEL_GRACE_SECONDS, DEFAULT_MAX_ATTEMPTS
from .model import Limits, Run
from .role import Role, role_from

DEFAULT_SETUP_SECONDS = 600.0
LFS = ("skip", "smudge")
FINDS = ("setup", "gates")
"""What is looked for in the repository of a task with a blueprint."""


ON_NO_ANSWER = ("wait", "abandon")
DECIDE_WITHIN_SECONDS = 3600.0


class NoAnswer(NamedTuple):
    """What becomes of a decision that nobody takes, `on_no_answer` of `ON_NO_ANSWER`, so long
    after it was asked for."""

    on_no_answer: str = "wait"
    within_seconds: float = DECIDE_WITHIN_SECONDS


class Setup(NamedTuple):
    """A shell command that is run once in each new worktree."""

    command: str
    timeout_seconds: float = DEFAULT_SETUP_SECONDS


class Config(NamedTuple):
    """What `run init --config` has said, with the defaults for the rest.

    `copy` are paths of untracked files, relative to the repository. `limits`, `max_attempts`,
    `max_infra_attempts` and `checks` (of tasks with a worktree) serve where a task says nothing.
    `mailboxes` maps a mailbox to how many attempts it may have at once. `environment` is given to
    set-up and checks. `secrets` are names of environment variables. `harvest`: what workers leave
    uncommitted is committed for them. `notify`: who is given the notices of a drive. `otel`: a
    drive exports the run's trace. `gates` are their definitions in order, each as
    `gates.definitions.Gate.as_json` has it. `roles` says of a role of blueprints
    who has its stages; a role that is not there is that of the task. `finds`, of `FINDS`: what is
    looked for in the repository. `decisions`: what becomes of those that nobody takes. `policy`:
    what changes have to satisfy, by the names of `policies.RULES`; None without one.
    """

    copy: tuple[str, ...] = ()
    setup: Setup | None = None
    limits: Limits = Limits()
    max_attempts: int = DEFAULT_MAX_ATTEMPTS
    max_infra_attempts: int = DEFAULT_MAX_ATTEMPTS
    checks: tuple[str, ...] = ()
    mailboxes: Mapping[str, int] = {}
    environment: Mapping[str, str] = {}
    secrets: tuple[str, ...] = ()
    submodules: bool = False
    lfs: str = "smudge"
    cancel_grace_seconds: float = CANCEL_GRACE_SECONDS
    harvest: bool = False
    notify: tuple[str, ...] = ()
    otel: bool = False
    gates: tuple[Mapping[str, Any], ...] = ()
    roles: Mapping[str, Role] = {}
    finds: tuple[str, ...] = FINDS
    decisions: NoAnswer = NoAnswer()
    policy: Mapping[str, Any] | None = None

    def as_json(self) -> dict[str, Any]:
        """Every setting, the defaults too, with nothing masked; `harvest`, `notify`, `otel`
        and `gates` only where they are used."""
        return {
            "copy": list(self.copy),
            "setup": None if self.setup is None else self.setup._asdict(),
            "limits": self.limits.as_json(),
            "max_attempts": self.max_attempts,
            "max_infra_attempts": self.max_infra_attempts,
            "checks": list(self.checks),
            "mailboxes": {name: {"max_parallel": n} for name, n in self.mailboxes.items()},
            "environment": dict(self.environment),
            "secrets": list(self.secrets),
            "submodules": self.submodules,
            "lfs": self.lfs,
            "cancel_grace_seconds": self.cancel_grace_seconds,
            **({"harvest": True} if self.harvest else {}),
            **({"notify": list(self.notify)} if self.notify else {}),
            **({"otel": True} if self.otel else {}),
            **({"gates": [dict(gate) for gate in self.gates]} if self.gates else {}),
            **({} if self.finds == FINDS else {"finds": list(self.finds)}),
            **({"roles": self._roles()} if self.roles else {}),
            **({} if self.decisions == NoAnswer() else {"decisions": self.decisions._asdict()}),
            **({} if self.policy is None else {"policy": dict(self.policy)}),
        }

    def _roles(self) -> dict[str, dict[str, Any]]:
        return {name: role.as_json() for name, role in self.roles.items()}

    def given(self) -> dict[str, Any]:
        """Only what differs from the defaults."""
        defaults = Config().as_json()
        found = {k: value for k, value in self.as_json().items() if value != defaults.get(k)}
        if "limits" in found:
            found["limits"] = {k: v for k, v in found["limits"].items() if v is not None}
        return found

    def canonical(self) -> str:
        """The one text that stands in the row of the run; equal for equal configs."""
        return json.dumps(self.given(), sort_keys=True, ensure_ascii=False, separators=(",", ":"))

    def shown(self) -> dict[str, Any]:
        """`as_json`, with the values of secrets masked."""
        return self._masked(self.as_json())

    def without_secrets(self) -> "Config":
        """To be handed on: the values of secrets are left out of the environment, and masked where
        else they stand."""
        found = self.shown()
        plain = {k: v for k, v in found["environment"].items() if k not in self.secrets}
        return from_given({**found, "environment": plain})

    def limits_for(self, own: Limits | None) -> Limits:
        """The clocks of a task: its own, and where it has none, those of the run."""
        if own is None:
            return self.limits
        pairs = zip(own, self.limits, strict=True)
        return Limits(*(here if here is not None else default for here, default in pairs))

    def checks_for(self, own: Sequence[str] | None, *, worktree: bool) -> tuple[str, ...]:
        """The checks of a task: its own, even if none; else those of the run, if it has code."""
        if own is not None:
            return tuple(own)
        return self.checks if worktree else ()

    def secret_values(self, environment: Mapping[str, str]) -> tuple[str, ...]:
        """What is to be masked: the values of the secrets, from the config or from the
        environment of a process."""
        named = (source.get(name) for name in self.secrets for source in self._sources(environment))
        return tuple(dict.fromkeys(value for value in named if value))

    def _sources(self, environment: Mapping[str, str]) -> tuple[Mapping[str, str], ...]:
        return (self.environment, environment)

    def _masked(self, whole: dict[str, Any]) -> dict[str, Any]:
        values = self.secret_values({})

        def mask(value: Any) -> Any:
            if isinstance(value, str):
                return masked(value, values)
            if isinstance(value, list):
                return [mask(each) for each in value]
            if isinstance(value, dict):
                return {key: mask(each) for key, each in value.items()}
            return value

        found = {key: mask(value) for key, value in whole.items() if key != "secrets"}
        hidden = {name: MASK for name in self.secrets if name in self.environment}
        found["environment"] = {**found["environment"], **hidden}
        return {key: found.get(key, whole[key]) for key in whole}


def config_of(run: Run) -> Config:
    """The config that a run was opened with."""
    return from_given(json.loads(run.config))


def from_given(given: Mapping[str, Any]) -> Config:
    """The config of what `Config.given` has returned."""
    values = dict(given)
    if values.get("setup") is not None:
        values["setup"] = Setup(**values["setup"])
    if "limits" in values:
        values["limits"] = Limits(**values["limits"])
    if "mailboxes" in values:
        values["mailboxes"] = {k: v["max_parallel"] for k, v in values["mailboxes"].items()}
    if "decisions" in values:
        values["decisions"] = NoAnswer(**values["decisions"])
    if "roles" in values:
        values["roles"] = {name: role_from(said) for name, said in values["roles"].items()}
    for name in ("copy", "checks", "secrets", "notify", "gates", "finds"):
        if name in values:
            values[name] = tuple(values[name])
    return Config(**values)
