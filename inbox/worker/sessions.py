"""Sessions of agents: which one a command goes on with, and when it is asked once more in its own.

A session is gone on with by the command that has left it, and by no other: that of an agent that is
known by workers with that agent, any other by commands of one's own.
"""

from collections.abc import Callable
from typing import NamedTuple

from inbox_orch.shared.adapters.usage import Session, session_in

from ..bus import Bus
from ..domain.model import Thread
from ..services import working
from .handover import Remains
from .plan import Plan
from .task import Terms

_AGAIN = """\
What you have answered cannot be taken in:

{reason}

Answer once more, with JSON that this JSON Schema accepts, and with nothing else: no words before or
after it, and no fence around it.

```json
{schema}
```
"""


class Question(NamedTuple):
    """What an agent is asked beside its task, and the session to ask it in."""

    text: str
    session: Session


def chosen(
    bus: Bus, plan: Plan, thread: Thread, terms: Terms, notice: Callable[[str], None]
) -> Terms:
    """The terms with the session that this worker's command goes on with, if any. A person is told
    of one that it does not, since a worker was lost in it: who knows what that one does there.
    Error `busy`."""
    session = terms.session
    if session is None:
        return terms
    if session.agent != plan.adapter:
        return terms._replace(session=None)
    held = bus.holders([thread.id]).get(thread.id)
    if held is not None and held.lost:
        said = f"a worker was lost in session {session.id}, so a new one is begun"
        notice(f"thread {thread.id}: {said}")
        return terms._replace(session=None)
    return terms


def once_more(
    bus: Bus, plan: Plan, thread: Thread, remains: Remains, reason: str
) -> Question | None:
    """What an agent is asked whose answer the schema refuses; None for what cannot be asked in the
    session of its last run. Error `busy`."""
    if plan.adapter is None:
        return None
    from inbox_orch.shared.adapters.commands import agent_named

    session = session_in(remains.usage)
    if session is None or not agent_named(plan.adapter).resume:
        return None
    schema = working.result_schema(bus.desk, thread)
    return Question(_AGAIN.format(reason=reason, schema=schema), session)


def tell(thread: Thread, remains: Remains, notice: Callable[[str], None]) -> None:
    """Tell a person of a session that the last run did not find any more."""
    session = session_in(remains.usage)
    if session is not None and session.lost is not None:
        notice(f"thread {thread.id}: session {session.lost} was lost, so a new one was begun")
