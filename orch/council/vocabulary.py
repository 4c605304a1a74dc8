"""The error codes and kinds of events of councils. Pure."""

from inbox_orch.shared.errors import Code

ERRORS = {
    "opposed": Code(
        9,
        80,
        "the recommendations speak against each other; `--force` makes one group of them",
    ),
    "no_quorum": Code(11, 50, "too few reviewers replied for a tally"),
}

EVENTS = (
    "round_opened",
    "round_closed",
    "reply_recorded",
    "override_recorded",
    "tally_revised",
    "report_stored",
)
