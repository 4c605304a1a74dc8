"""`inbox guide`."""

from inbox_orch.shared.declaring import Context, shell_of, verb
from inbox_orch.shared.texts import packaged


@verb("guide", examples=("inbox guide", "inbox guide >> AGENTS.md", "inbox guide --json"))
def command(context: Context) -> None:
    """Print a few lines for the AGENTS.md of a repository whose agents use `inbox`.

    Nothing is written; add them where they fit. Needs no database.
    """
    text, output = packaged("inbox_orch.inbox", "guide.md"), shell_of(context).output
    if output.as_json:
        output.result({"text": text})
    else:
        output.text(text)
