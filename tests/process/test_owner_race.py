"""One owner: many processes want one thread at the same moment, and one of them gets it."""

import contextlib
import random

from inbox_orch.inbox import Bus
from support.clocks import SteppingClock
from support.ledgers import all_events, live_leases, owners_by_event
from support.lengths import LONG
from support.processes import (
    Clerk,
    Gun,
    close_all,
    crew,
    finish,
    linger,
    run_json,
    start_json,
)

CLAIMERS = 32
ROUNDS = 100
ROUNDS_OF_KILLS = 40
LEASE_SECONDS = 300


def test_of_32_processes_exactly_one_gets_the_thread_in_each_of_100_rounds(path):
    gun = Gun()
    clerks = [Clerk(path, f"w{n}", gun=gun) for n in range(CLAIMERS)]
    with crew(*clerks, gun), Bus.open(path, agent="leader") as leader:
        for _ in range(ROUNDS):
            thread = leader.send(to="workers", subject="wanted by all").thread.id
            for clerk in clerks:
                clerk.start_at_gun("claim", thread, mailboxes=["workers"])
            for clerk in clerks:
                clerk.aimed()
            gun.fire(CLAIMERS)
            outcomes = [(a.exit_code, a.refused) for a in (c.answer() for c in clerks)]
            assert sorted(outcomes, key=str) == [
                (0, None),
                *[(4, "already_claimed")] * (CLAIMERS - 1),
            ]
        assert all(len(owners) == 1 for owners in owners_by_event(all_events(leader)).values())


def test_of_32_commands_exactly_one_exits_with_0(path, inbox_bin):
    with Bus.open(path, agent="leader") as leader:
        for _ in range(3):
            thread = leader.send(to="workers", subject="wanted by all").thread.id
            database_option = ("--db", str(path))
            running = [
                start_json(
                    inbox_bin,
                    *("claim", thread, "--mailbox", "workers", *database_option),
                    agent=f"w{n}",
                )
                for n in range(CLAIMERS)
            ]
            outcomes = [finish(process) for process in running]
            assert sorted(o.exit_code for o in outcomes) == [0, *[4] * (CLAIMERS - 1)]
            codes = {o.json["error"]["code"] for o in outcomes if o.exit_code == 4}
            assert codes == {"already_claimed"}
            (winner,) = [o for o in outcomes if o.exit_code == 0]
            shown = run_json(inbox_bin, "show", thread, *database_option).json["data"]["thread"]
            assert shown["holder"] == winner.json["data"]["lease"]["holder"]


def test_a_thread_whose_claimers_are_killed_has_one_owner_and_is_taken_over(path):
    chance = random.Random(20)
    gun = Gun()
    clerks = [Clerk(path, f"w{n}", gun=gun) for n in range(CLAIMERS)]
    with Bus.open(path, agent="leader") as leader:
        threads = []
        with contextlib.ExitStack() as stack:
            stack.callback(close_all, clerks, gun)
            for _ in range(ROUNDS if LONG else ROUNDS_OF_KILLS):
                thread = leader.send(to="workers", subject="t", max_deliveries=1000).thread.id
                threads.append(thread)
                _claim_while_some_are_killed(path, clerks, gun, thread, chance)
                assert live_leases(path).get(thread, 0) <= 1
            _finish_all(path)
        events = all_events(leader)
        owners_by_event(events)
        finished = [e.thread_id for e in events if e.kind == "thread_done"]
        assert sorted(finished) == sorted(threads)


def _claim_while_some_are_killed(path, clerks, gun, thread, chance):
    for clerk in clerks:
        clerk.start_at_gun("claim", thread, mailboxes=["workers"], lease_seconds=LEASE_SECONDS)
    for clerk in clerks:
        clerk.aimed()
    gun.fire(len(clerks))
    victims = chance.sample(range(len(clerks)), 2)
    for place in victims:
        linger(chance.uniform(0, 0.01))
        clerks[place].kill()
    survivors = [clerk for place, clerk in enumerate(clerks) if place not in victims]
    assert [clerk.answer().exit_code for clerk in survivors].count(0) <= 1
    for place in victims:
        clerks[place].close()
        clerks[place] = Clerk(path, clerks[place].agent, gun=gun)


def _finish_all(path):
    """Take over whatever the killed have left, and the others keep, by expiry alone."""
    with Bus.open(path, agent="later", clock=SteppingClock(LEASE_SECONDS + 1)) as later:
        while later.list(states_wanted=["pending", "claimed"], limit=1).items:
            claimed = later.claim(mailboxes=["workers"])
            later.done(claimed.thread.id, claimed.lease.token)
