"""How long the tests take: what a short run leaves out, `INBOX_ORCH_LONG=1 script/test` does."""

import os

LONG = bool(os.environ.get("INBOX_ORCH_LONG"))
