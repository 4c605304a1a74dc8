"""The error codes and kinds of events of the leader. Pure."""

from inbox_orch.shared.errors import Code

ERRORS = {
    "worker_failed": Code(
        6, 130, "a worker that was to be started does not stay up; the message says why"
    ),
    "collector_failed": Code(
        6,
        140,
        "an OpenTelemetry collector has not taken a trace; the next export sends it",
        retryable=True,
    ),
    "run_unsuccessful": Code(11, 10, "the run has ended, and not every task succeeded"),
    "needs_decision": Code(
        11,
        20,
        "nothing goes on, since a question or a decision is open, or work does not merge",
    ),
}

EVENTS: tuple[str, ...] = ()
