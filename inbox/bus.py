"""`Bus`: the public Python API, for long-lived processes and for `orch`.

The command line is a thin shell over it. A `Bus` belongs to the thread and process that opened
it; open one for each.
"""

from .services.caring import Caring
from .services.claiming import Claiming
from .services.reading import Reading
from .services.sending import Sending
from .services.waiting import Waiting


class Bus(Sending, Claiming, Waiting, Reading, Caring):
    """An open bus: `send`, `fetch`, `claim`, `renew`, `update`, `ask`, `wait_reply`, `reply`,
    `done`, `fail`, `release`, `cancel`, `unseal`, `list`, `show`, `watch`, `stats`, and to look
    after it `doctor`, `backup`, `export`, `prune`.

    Failures are `InboxOrchError` with the codes of the command line (`error.code`).
    """
