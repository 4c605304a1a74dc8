#!/bin/sh
# What stands in for an agent in the demonstration of a council: it reads the request on standard
# input, takes from it which council and brief it is about, and answers according to its name.
set -eu

request=$(cat)
envelope=$(printf '%s\n' "$request" | grep -m 1 '^{"council_id": ' | sed 's/^{//; s/}$//')
case $request in
*"## S2 "*) ;;
*)
    echo "there is no section S2 in the brief" >&2
    exit 1
    ;;
esac

answer() {
    cat >"$INBOX_RESULT" <<REPLY
{
  "schema": "orch.council.reply/1", $envelope, "checked": ["S1", "S2"], "model": "$1",
  "decisions": [{"decision": "D1", "choice": "$2", "confidence": 80}],
  "recommendations": [$3],
  "verdict": "approve_with_changes"
}
REPLY
}

case $INBOX_AGENT in
architecture-reviewer)
    answer canned-a sqlite '
    {"id": "wal", "title": "Keep the queue in SQLite in WAL mode",
     "proposal": "One file a project; readers do not wait for the writer.",
     "keywords": ["wal", "sqlite", "journal mode"], "stance": "do", "about": "S2",
     "severity": "major", "confidence": 85},
    {"id": "lease", "title": "Give every claim a lease with a token",
     "proposal": "A worker that dies is noticed by its lease running out.",
     "keywords": ["lease", "fencing token", "expiry"], "stance": "do", "about": "S1"}'
    ;;
implementation-reviewer)
    answer canned-b sqlite '
    {"id": "sqlite", "title": "Move the state into SQLite with WAL",
     "proposal": "Replace the JSON file; a crash in the middle then loses nothing.",
     "keywords": ["sqlite", "wal", "journal mode", "atomic commit"], "stance": "do",
     "about": "S2", "severity": "major", "confidence": 75},
    {"id": "tokens", "title": "Fence stale workers off with lease tokens",
     "proposal": "Refuse every report that does not carry the current token.",
     "keywords": ["lease", "fencing token", "epoch"], "stance": "do", "about": "S1"}'
    ;;
risk-reviewer)
    while [ ! -e "$DEMO/go" ]; do sleep 0.1; done # until the round is over
    answer canned-c files '
    {"id": "no-wal", "title": "Do not enable WAL on a network share",
     "proposal": "The folder may lie on a share, where shared memory does not work.",
     "keywords": ["wal", "sqlite", "network filesystem", "journal mode"], "stance": "avoid",
     "about": "S2", "kind": "risk", "severity": "blocker", "confidence": 70},
    {"id": "fence", "title": "Let leases expire and fence the old holder off",
     "proposal": "What a late worker writes must not win over its successor.",
     "keywords": ["lease", "fencing token", "expiry"], "stance": "do", "about": "S1",
     "kind": "risk", "severity": "major"}'
    ;;
esac
