"""Git's own variables are out of the environment while any thread runs a git."""

import contextlib
import os

from inbox_orch.orch.git import commands
from support.processes import Child

_THREADS = """
import os, sys, threading
from inbox_orch.orch.git.commands import output_of

folder, together, said = sys.argv[1], threading.Barrier(8), []

def ask():
    together.wait()
    try:
        said.append(output_of(folder, "rev-parse", "--show-toplevel"))
    except BaseException as error:
        said.append(repr(error))

threads = [threading.Thread(target=ask) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(*sorted({*said, os.environ["GIT_DIR"]}), sep="\\n")
"""


def test_the_last_thread_that_runs_a_git_puts_them_back(monkeypatch):
    monkeypatch.setenv("GIT_DIR", "/elsewhere")
    with contextlib.ExitStack() as one:
        one.enter_context(commands.without_git_variables())
        with commands.without_git_variables():
            one.close()
            assert "GIT_DIR" not in os.environ
    assert os.environ["GIT_DIR"] == "/elsewhere"


def test_threads_that_ask_git_at_once_get_their_answers(site, monkeypatch):
    """From a server, say, which a hook has started with git's variables in the environment."""
    monkeypatch.setenv("GIT_DIR", "/elsewhere")
    child = Child(_THREADS, site.repository, fresh=True)
    said = child.process.stdout.read().decode().splitlines()
    child.close()

    assert said == sorted(["/elsewhere", str(site.repository)])
