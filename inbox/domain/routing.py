"""Where a message goes, and who may see a thread."""

from collections.abc import Collection


def destinations(
    kind: str, author: str, *, sender: str, mailbox: str, holder: str | None
) -> tuple[str, ...]:
    """The mailboxes of a message on a thread (one or two).

    `sender` and `mailbox` are the thread's, `holder` is who holds its lease now.
    """
    if kind == "task":
        return (mailbox,)
    if kind == "reply":
        if author == sender:
            return (holder or mailbox,)
        return (sender,) if holder in (None, author, sender) else (sender, str(holder))
    return (sender,)


def visible(
    *,
    sealed: bool,
    sender: str,
    mailbox: str,
    holders: Collection[str],
    agent: str | None,
    mailboxes: Collection[str],
) -> bool:
    """Whether a thread is shown to `agent`, who reads `mailboxes`.

    A sealed thread is shown to its sender, to who holds or held it, and to an agent that reads
    its mailbox. It is a promise about what the commands show, not a security boundary.
    """
    if not sealed:
        return True
    if agent is None:
        return False
    return agent == sender or agent in holders or mailbox in mailboxes
