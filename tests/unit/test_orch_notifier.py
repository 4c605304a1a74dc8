"""A notice that cannot be given keeps nobody from going on."""

import errno
import os
import subprocess
import sys

from inbox_orch.orch.leader.notices import BELL, Notice, Notifier

_OVER = Notice("end", "run", None, "it is over", None, {})


class Terminal:
    """Standard error, on a terminal."""

    def isatty(self) -> bool:
        """It is one."""
        return True


def test_a_bell_of_a_terminal_that_has_gone_away_is_not_missed(monkeypatch):
    said: list[str] = []

    def fail(descriptor, content):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", Terminal())
        patch.setattr(os, "write", fail)
        Notifier((BELL,), said.append).tell(_OVER)

    assert said == []


def test_a_command_that_cannot_be_started_is_complained_of(monkeypatch):
    said: list[str] = []

    def fail(*_words, **_options):
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    with monkeypatch.context() as patch:
        patch.setattr(subprocess, "Popen", fail)
        Notifier(("true",), said.append).tell(_OVER)

    (complaint,) = said
    assert "could not be given" in complaint
