"""Who takes which seat of a council whose reviewers are started for it."""

import pytest

from inbox_orch.orch.council.prompts import DEFAULT_REVIEWERS
from inbox_orch.orch.leader.hearing import benches_of, reviewers_of
from inbox_orch.orch.leader.posts import posts_of
from inbox_orch.shared.errors import InboxOrchError


def seated(*workers: str, reviewers: tuple[str, ...] = ()) -> dict[str, tuple[str, ...]]:
    """The seats of each agent."""
    posts = posts_of(workers)
    return {
        bench.post.agent: bench.reviewers
        for bench in benches_of(posts, reviewers_of(posts, reviewers))
    }


def test_one_command_takes_every_seat_as_one_agent():
    assert seated("cat") == {"cat": DEFAULT_REVIEWERS}


def test_commands_without_a_name_take_turns():
    assert seated("cat", "true", reviewers=("a", "b", "c")) == {"cat": ("a", "c"), "true": ("b",)}


def test_the_same_command_given_twice_is_one_agent_still():
    assert seated("cat", "cat", "true") == {
        "cat": DEFAULT_REVIEWERS[:2],
        "true": DEFAULT_REVIEWERS[2:],
    }


def test_two_commands_with_one_program_are_two_agents():
    assert seated("a=cat x", "b=cat y", "c=cat x") == {"cat": ("a", "c"), "cat-2": ("b",)}


def test_seats_that_workers_name_are_the_seats():
    assert seated("ada=cat", "bob=true") == {"cat": ("ada",), "true": ("bob",)}


def test_a_named_seat_is_taken_first_and_the_rest_goes_to_the_others():
    found = seated("cat", "b=true", reviewers=("a", "b", "c"))

    assert found == {"cat": ("a", "c"), "true": ("b",)}


@pytest.mark.parametrize(
    "workers, reviewers, said",
    [
        (("ada=cat", "ada=true"), (), "the seat ada is given to two workers"),
        (("ada=cat",), ("ada", "bob"), "nobody takes the seat bob"),
        (("eve=cat", "true"), ("ada", "bob"), "no seat of the council is called eve"),
        (("cat", "true", "false"), ("ada", "bob"), "3 workers for 2 seats"),
    ],
)
def test_what_leaves_a_seat_or_a_worker_over_is_refused(
    workers: tuple[str, ...], reviewers: tuple[str, ...], said: str
):
    with pytest.raises(InboxOrchError) as refused:
        seated(*workers, reviewers=reviewers)

    assert refused.value.code == "usage"
    assert said in refused.value.message
