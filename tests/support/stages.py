"""Attempts that go by a blueprint: what tests say in a line about them."""

import json
from pathlib import Path
from typing import Any

from inbox_orch.orch.attempts import visit_rows as visits
from inbox_orch.orch.attempts.visits import Visit
from inbox_orch.orch.runs.model import Run
from inbox_orch.orch.stages.model import Blueprint, Stage
from support.runs import Site, add_task


def agent(name: str, **options: Any) -> Stage:
    """A stage of an agent."""
    return Stage(name, "agent", goal=f"Do {name}.", **options)


def gates(name: str, **options: Any) -> Stage:
    """A stage that runs gates."""
    return Stage(
        name,
        "deterministic",
        **({"action": "run_gates"} | options if "run" not in options else options),
    )


def action(name: str, what: str, **options: Any) -> Stage:
    """A stage that carries out an action."""
    return Stage(name, "deterministic", action=what, **options)


def review(name: str, **options: Any) -> Stage:
    """A stage of a reviewer."""
    return agent(name, **{"writes": False, "reviews": True, "role": "reviewer"} | options)


def add(
    site: Site, run: Run, key: str, *stages: Stage, named: str = "tried", **options: Any
) -> None:
    """A task that goes by a blueprint of these stages; a run keeps the first of a name."""
    drawn = Blueprint(named, stages)
    add_task(
        site.scheduler,
        run,
        key_name=key,
        blueprint=drawn.id,
        drawn=drawn.canonical(),
        **{"title": f"Do {key}"} | options,
    )


class Course:
    """One attempt on its way."""

    def __init__(self, site: Site, run: Run, key: str = "a") -> None:
        self.site, self.run, self.key = site, run, key

    @property
    def attempt(self) -> Any:
        return self.site.attempts(self.run, self.key)[-1]

    @property
    def worktree(self) -> Path:
        return Path(str(self.attempt.worktree_path))

    def visits(self) -> list[Visit]:
        with self.site.scheduler.database.snapshot() as snapshot:
            return visits.of_attempt(snapshot, self.attempt.id)

    def way(self) -> list[tuple[str, str]]:
        """Where it went, and how each visit ended."""
        return [(v.stage, v.verdict or v.state) for v in self.visits() if v.stage != "surroundings"]

    def lead(self) -> None:
        """What any leader does."""
        self.site.scheduler.reconcile(self.run)

    def item(self) -> dict[str, Any]:
        found = self.attempt
        return {"thread": found.thread_id, "mailbox": found.mailbox}

    def claim(self, agent: str = "w1") -> tuple[Any, str]:
        bus = self.site.office.bus(agent)
        claimed = bus.claim(self.attempt.thread_id, mailboxes=[self.attempt.mailbox])
        return bus, str(claimed.lease.token)

    def text(self) -> str:
        """What the present worker is told."""
        return self.site.scheduler.bus.messages(self.attempt.thread_id)[0].body or ""

    def files(self) -> dict[str, bytes]:
        """What is attached to that, by its names."""
        bus = self.site.scheduler.bus
        said = bus.messages(self.attempt.thread_id)[0]
        places = {each.name: bus.artifacts.path(each.sha256) for each in said.artifacts}
        return {name: Path(place).read_bytes() for name, place in places.items()}

    def work(
        self, agent: str = "w1", *, body: str = "done", payload: Any = None, **files: str
    ) -> None:
        """A worker writes files and says that it is done; then a leader looks."""
        bus, token = self.claim(agent)
        for name, content in files.items():
            (self.worktree / name.replace("_", ".")).write_text(content)
        given = None if payload is None else json.dumps(payload)
        bus.done(self.attempt.thread_id, token, body=body, payload=given)
        self.lead()

    def judge(self, verdict: str, agent: str = "rev", *findings: str, summary: str = "so") -> None:
        """A reviewer hands in a verdict."""
        listed = [{"text": text} for text in findings]
        said = {"verdict": verdict, "summary": summary, "findings": listed}
        self.work(agent, body=json.dumps(said))

    def fail(self, body: str = "it does not work", **options: Any) -> None:
        bus, token = self.claim()
        bus.fail(self.attempt.thread_id, token, body=body, **options)
        self.lead()
