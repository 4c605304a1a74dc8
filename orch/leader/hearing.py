"""A hearing: a brief that is put to reviewers who are started for it, and the council it is in.

The same request leads to the same council, until the run of that is closed: so what was
interrupted goes on when it is asked for once more, and two who ask at once share the work.
"""

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from inbox_orch.shared.digests import digest_of
from inbox_orch.shared.errors import InboxOrchError, usage
from inbox_orch.shared.ids import counted, printable

from ..council import prompts, sit, views
from ..council.ask import Asked
from ..council.open import start_council
from ..council.views import CouncilView
from ..git.repository import Repository
from ..runs import run_rows as runs
from ..runs.desk import Desk
from ..runs.model import Run
from .crew import Crew
from .posts import Post


class Bench(NamedTuple):
    """The seats that one command takes: one agent, however many they are."""

    post: Post
    reviewers: tuple[str, ...]


class Hearing(NamedTuple):
    """The council of a request, the mailboxes of its reviewers, and whether it was there."""

    run: Run
    mailboxes: dict[str, str]
    resumed: bool


def reviewers_of(posts: Sequence[Post], named: Sequence[str]) -> tuple[str, ...]:
    """The seats: those that are `named`; else those that the posts name, if each does; else the
    three that every council has by default."""
    if named:
        return tuple(named)
    own = [post.mailbox for post in posts if post.mailbox is not None]
    return tuple(dict.fromkeys(own)) if len(own) == len(posts) else prompts.DEFAULT_REVIEWERS


def benches_of(posts: Sequence[Post], reviewers: Sequence[str]) -> tuple[Bench, ...]:
    """Who takes which seat: posts that name one take that, the others take turns. Error `usage`:
    a seat that there is not, or that two want; a seat or a post that is left over."""
    taken: dict[str, Post] = {}
    for post in posts:
        if post.mailbox is not None:
            _check_seat(post.mailbox, reviewers, taken)
            taken[post.mailbox] = post
    others = [post for post in posts if post.mailbox is None]
    free = [name for name in reviewers if name not in taken]
    _check_left_over(others, free)
    taken |= {name: others[number % len(others)] for number, name in enumerate(free)}
    seats: dict[str, list[str]] = {}
    for name in reviewers:
        seats.setdefault(taken[name].command, []).append(name)
    return tuple(Bench(taken[names[0]], tuple(names)) for names in seats.values())


def _check_seat(name: str, reviewers: Sequence[str], taken: Collection[str]) -> None:
    if name not in reviewers:
        raise usage(
            f"no seat of the council is called {printable(name)}",
            hint=f"the seats are {', '.join(reviewers)}; --reviewers A,B,C names others",
        )
    if name in taken:
        raise usage(
            f"the seat {name} is given to two workers",
            hint="one command is one seat: --reviewers A,B,C makes more of them",
        )


def _check_left_over(others: Sequence[Post], free: Sequence[str]) -> None:
    if free and not others:
        raise usage(
            f"nobody takes the seat {free[0]}",
            hint="add a --worker CMD without a name: it takes all seats that are left",
        )
    if len(others) > len(free):
        raise usage(
            f"there are {len(others)} workers for {counted(len(free), 'seat')}",
            hint="--reviewers A,B,C,D makes more of them",
        )


def open_hearing(desk: Desk, asked: Asked) -> Hearing:
    """The council in which this is asked. Its reviewers get mailboxes of its own, so that those
    who are started for it do nothing else. Errors as of `start_council`."""
    place = None if asked.repository is None else Repository.at(asked.repository).path
    digest, number = digest_of({"ask": asked.digest(place)}), 1
    mailboxes = {
        name: f"ask-{digest[:12]}-{position}" for position, name in enumerate(asked.reviewers, 1)
    }
    while True:
        answer = start_council(
            desk, asked, key=f"ask-{digest}-{number}", mailboxes=tuple(mailboxes.values())
        )
        with desk.database.snapshot() as snapshot:
            run = runs.get(snapshot, answer.data["council"]["id"])
        if run is not None and run.state != "closed":
            return Hearing(run, mailboxes, bool(answer.replayed))
        number += 1


def is_over(desk: Desk, hearing: Hearing) -> bool:
    """Whether the round in which its reviewers reply is closed."""
    return not views.view(desk, hearing.run).rounds[0].open


def hear(
    desk: Desk,
    hearing: Hearing,
    benches: Sequence[Bench],
    *,
    wait_seconds: float,
    on_look: Callable[[CouncilView], None],
) -> None:
    """Start the reviewers, wait until the round is over or the time is, and end them: what they
    have not finished they hand back.

    `on_look` is called with how the council stands. Error `worker_failed`.
    """
    with Crew(desk, hearing.run, ()) as crew:
        for post, reviewers in benches:
            crew.add(post, [hearing.mailboxes[name] for name in reviewers], len(reviewers))

        def looked(view: CouncilView) -> None:
            crew.look()
            on_look(view)

        try:
            sit.wait_for_council(
                desk, hearing.run, wait_seconds=wait_seconds, on_look=looked, pulse=crew.look
            )
        except InboxOrchError as error:
            if error.code != "timeout":
                raise
