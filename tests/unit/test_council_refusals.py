"""What a command says that could do nothing is no vote; what a reviewer advises is one, however it
begins."""

import json

import pytest

from inbox_orch.orch.council.refusals import is_refusal
from inbox_orch.orch.council.replies import Expected, Read, read
from support.councils import BRIEF_SHA256, COUNCIL_ID, DECISIONS, reply

EXPECTED = Expected(COUNCIL_ID, 1, BRIEF_SHA256, DECISIONS, ("S1", "S2"))
REFUSALS = [
    "Cannot access the file.",
    "I was unable to read the diff because the sandbox denied the command.",
    "API Error: 429 rate limit exceeded, try again later.",
    "Unable to read the diff.",
    "I cannot do that",
    "  * Sorry, no.",
    "I’m sorry",
    "I'm sorry, but I can't help with that.",
    "I cannot read the file state.py.",
    "Error: 401 Unauthorized",
    "503 Service Unavailable",
    "You've hit your usage limit. Try again at 5 pm.",
    'Traceback (most recent call last):\n  File "x", line 1\nValueError: x',
    "Credit balance is too low",
    "cat: diff.txt: No such file or directory",
    "I don't have access to the repository.",
    "I do not have permission to run git here, so no review is possible.",
    "Execution error",
    "Rate limit reached for gpt-5",
    "bash: codex: command not found",
    "Failed to authenticate. Please run /login",
    "It seems that I cannot open the file. Please provide the contents.",
    "I could not find the file brief.md in the worktree.",
    "I'm unable to review this: the tool was blocked.",
    "Request timed out",
    "As an AI language model I cannot judge designs.",
    "I must decline to review this.",
    "Connection refused",
    "fatal: not a git repository",
    "Invalid API key · Please run /login",
    "The file could not be read, so I could not complete the review.",
    "Unfortunately, I was not able to access the worktree.",
    "I couldn't complete the review in time.",
    "Could not read the brief: it was empty.",
    "Error: file not found",
    "permission denied",
    "Reached the maximum number of turns",
    "Access denied",
    "No access to the repository.",
    "The sandbox denied every command; I could not read anything.",
    "I was not able to open S2.",
    "Tool use was rejected. I cannot continue.",
    "Sorry, I can't assist with this request.",
    "The model is overloaded. Please try again.",
    "There was an error reading the file.",
    "Error reading file: ENOENT",
    "I lack the permissions to read the diff.",
    "Nothing could be read: the command was denied.",
    "Review not possible: diff is missing.",
    "Could not access file",
    "Failed to read the diff.",
    "Failed to fetch the repository: timeout",
    "I have no tools to open files.",
    "I've failed to load the diff.",
    "Cannot see the diff.",
    "I'm not able to run commands here.",
    "I was blocked from reading the repository.",
    "Could not complete: token limit exceeded.",
    "Error: Request failed with status code 429",
    "anthropic.RateLimitError: Error code: 429",
    "openai.APIConnectionError: Connection error.",
    "The request was rejected because the quota has been exceeded.",
    "I need permission to read the file. Please approve.",
    "I wasn't able to read the diff.",
    "We were unable to obtain the patch.",
    "Unable to proceed without access to the code.",
    "No review: the worktree is missing.",
    "Review skipped: file not found.",
    "Request failed with status code 503",
    "ERROR: stream error: unexpected status 401 Unauthorized",
    "Claude AI usage limit reached|1700000000",
    "I could not see the contents of the brief.",
    "There is nothing for me to review: the diff is empty.",
    "The tool call was denied, so I cannot review this.",
    "I'm sorry, I'm having trouble accessing the file.",
    "Having trouble reaching the API.",
    "Failed to connect to api.openai.com port 443",
    "curl: (6) Could not resolve host: api.anthropic.com",
    "The brief could not be opened.",
    "I am not permitted to read this repository.",
]
REVIEWS = [
    "The worker cannot read the file after a crash.",
    "Connection errors are not retried; add a back-off.",
    "Timeouts: the lease outlives the worker.",
    "Sorry to be blunt: the design loses data.",
    "Errors from git are swallowed in salvage.",
    "Unable to verify S4 from the text alone, but S2 must take the lock.",
    "Quota handling is wrong: it counts retries twice.",
    "Failed jobs are never retried. They should be.",
    "I could not reproduce the race, yet the code allows it: hold the lock.",
    "API errors: retry with jitter.",
    "Unauthorized access is possible through the socket.",
    "The service is unavailable during migration; do it online.",
    "Permission denied errors must be told to the user.",
    "Rate limits should be per agent.",
    "I can see that it works",
    "The parser is sorry code",
    "Sorry for the delay, here is my review. Enable WAL, since readers wait.",
    "Sorry for the delay, here is my review.",
    "We should enable WAL mode.\n\nReaders wait for the writer today.",
    "Unable to find anything wrong with the design.",
    "I could not find any issues.",
    "I cannot recommend merging this: the lock is not held.",
    "I could not run the tests, but the lock must be taken first.",
    "I was unable to read S3. S2 is fine; take the lock first.",
    "The API returns error 429 without Retry-After; add a back-off.",
    "Unauthorized users can read the file; check permissions on open.",
    "I cannot see why the index is kept.",
    "Rate limits are missing: answer 429 with Retry-After.",
    "The parser cannot read the file twice.",
    "Sorry if this is terse. The journal should be rotated.",
    "Nothing to add: the design is sound.",
    "Apologies for the brevity.\nThe store loses jobs when two writers race.",
    "I cannot find a flaw in S2, but the index needs work.",
    "As an architect I would split the service.",
    "I am sorry to say that the store loses jobs with two writers.",
    "I am unable to think of anything to improve.",
    "Unable to find a problem",
    "I can't see anything to object to.",
    "Timeouts are not handled: a worker that hangs holds its lease.",
    "Permission checks are missing on cancel.",
    "The error: line is wrong, exit codes differ.",
    "Errors are swallowed in the worker.",
    "I won't repeat what others say; use WAL.",
    "Cannot recommend: SQLite on NFS corrupts.",
    "Could not be simpler. Ship it.",
    "Failed writes are not retried by the store.",
    "I cannot stress enough that backups are untested.",
    "I have no objections at all.",
    "There is no access control on the socket.",
    "No access control on the socket: anybody can cancel.",
    "Unable to resume after a crash: the journal is truncated.",
    "Access tokens never expire.",
]


def looked_at(raw: str) -> Read:
    return read(raw, reviewer="r1", expected=EXPECTED)


@pytest.mark.parametrize("text", REFUSALS)
def test_a_text_that_says_nothing_could_be_done_is_declined(text):
    assert is_refusal(text)
    assert looked_at(text).state == "declined"
    assert looked_at(f"{text}\nverdict: approve\n").state == "declined"


@pytest.mark.parametrize("text", REVIEWS)
def test_a_review_counts_however_it_begins(text):
    assert not is_refusal(text)
    assert looked_at(text).state == "valid"


@pytest.mark.parametrize("opening", REFUSALS)
def test_lines_in_the_form_count_whatever_stands_before_them(opening):
    found = looked_at(
        f"{opening}\nverdict: approve\n- [do] Enable WAL mode :: wal, sqlite, journal"
    )

    assert found.state == "valid"
    assert [item.title for item in found.reply.items] == ["Enable WAL mode"]


@pytest.mark.parametrize("example", ['{"wal": true}', '{"wal": tru', "```json\n{]\n```"])
def test_lines_in_the_form_count_beside_an_example_in_braces(example):
    found = looked_at(f"For example {example}\n- [do] Enable WAL mode :: wal, sqlite, journal\n")

    assert [item.title for item in found.reply.items] == ["Enable WAL mode"]


def test_a_broken_reply_is_sent_back_though_it_quotes_lines_in_the_form():
    broken = json.dumps(reply())[:-1]

    assert looked_at(f"{broken}\n- [do] Enable WAL mode :: wal\n").state == "invalid"


def test_a_choice_is_a_vote_whatever_stands_around_it():
    found = looked_at("Sorry, short of time.\nD1=WAL\n")

    assert [vote.choice for vote in found.reply.decisions] == ["WAL"]


@pytest.mark.parametrize("reason", [*REFUSALS[:4], "API Error: 529 overloaded_error"])
@pytest.mark.parametrize("verdict", ["approve", "reject", "approve_with_changes"])
def test_a_refusal_in_json_is_declined_whatever_its_verdict(reason, verdict):
    stub = reply(
        recommendations=[], decisions=[], no_recommendations_because=reason, verdict=verdict
    )

    assert looked_at(json.dumps(stub)) == Read("declined", None, (reason,))


@pytest.mark.parametrize(
    "reason",
    [
        *("The design is sound.", "I could not find anything to improve."),
        *("Sorry, nothing to add.", "Unable to find a fault in S2."),
    ],
)
def test_nothing_to_recommend_after_a_look_is_an_answer(reason):
    whole = reply(recommendations=[], decisions=[], no_recommendations_because=reason)

    assert looked_at(json.dumps(whole)).state == "valid"


def test_items_that_only_refuse_are_declined_too():
    whole = reply(decisions=[])
    whole["recommendations"][0].update(
        title="Cannot access the file", proposal="I was unable to read the diff, access was denied."
    )

    assert looked_at(json.dumps(whole)).state == "declined"
