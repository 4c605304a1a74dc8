"""Workers of roles, kept up until their run is over: what `orch worker` does.

Must not lead: it dispatches nothing, takes nothing in, and decides nothing.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from inbox_orch.shared.errors import InboxOrchError, not_found, usage
from inbox_orch.shared.ids import plain_number
from inbox_orch.shared.store import events, waits

from ..attempts import moving
from ..runs.config import config_of
from ..runs.desk import Desk
from ..runs.model import Run
from ..stages import roles
from .crew import Crew
from .posts import Post, posts_of_roles

_GOES_ON = ("running", "stuck")
"""Outcomes of a run in which there may be work again."""


class Serving(NamedTuple):
    """A role, and the worker that serves it."""

    role: str
    post: Post

    def as_json(self) -> dict[str, Any]:
        """The role, its mailbox, and what is run: an agent by its name, or a command."""
        post = self.post
        return {
            "role": self.role,
            "mailbox": post.mailbox,
            "adapter": post.adapter,
            "command": post.command if post.adapter is None else None,
        }


def servings(run: Run, names: Sequence[str]) -> tuple[Serving, ...]:
    """The roles of these names, all whose workers the run's config describes if there are none, and
    their workers. Errors: `not_found` for a role that the config does not know, `usage` for one
    whose workers it does not describe, and as of `posts_of_roles`."""
    known = config_of(run).roles
    manned = [name for name, role in known.items() if role.is_manned]
    for name in names:
        if name not in known:
            hint = f"the config of run {run.name} has {', '.join(known) or 'no roles'}"
            raise not_found("role", name, hint=hint)
    wanted = list(dict.fromkeys(names)) or manned
    idle = [name for name in wanted if name not in manned]
    if idle or not wanted:
        what = f"role {idle[0]}" if idle else "any role"
        raise usage(
            f"the config of run {run.name} does not say what the workers of {what} run",
            hint="give the role `adapter: NAME` or `command: [CMD, …]` in the config, or serve its "
            "mailbox yourself: inbox work --mailbox MAILBOX --with NAME",
        )
    return tuple(map(Serving, wanted, posts_of_roles(run, wanted)))


def idle_in(desk: Desk, run: Run, wanted: Sequence[Serving]) -> set[str]:
    """Those of the roles that no stage of the run has by now."""
    with desk.database.snapshot() as snapshot:
        used = roles.used_in(snapshot, run)
    return {each.role for each in wanted}.difference(used)


def serve(desk: Desk, run: Run, crew: Crew, *, wait_seconds: float) -> str:
    """Keep the workers of a crew up until the run is over; its outcome. Errors: `worker_failed`
    when one does not stay up, `timeout` when the run is not over in time."""
    last = "running"

    def look() -> waits.Look:
        nonlocal last
        crew.look()
        with desk.database.snapshot() as snapshot:
            picture = moving.picture(desk, snapshot, run, desk.database.now().wall_ms)
        last = picture.outcome
        return waits.Look(None if last in _GOES_ON else last)

    topics = (events.run_topic(run.id), run.leader)
    found = waits.wait(desk.database, topics, look, wait_seconds=wait_seconds, pulse=crew.look)
    if found is None:
        raise InboxOrchError(
            "timeout",
            f"run {run.name} is not over within {plain_number(wait_seconds)} s",
            hint="call again to serve on; what its workers held is handed back",
            data={"run": run.name, "outcome": last},
        )
    return last
