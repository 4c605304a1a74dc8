"""A guardian: a small shell process that ends the commands of a process that was killed.

A process that dies by SIGKILL can end nothing, and what it did is taken over without it: the next
one's command would meet the orphan in the same worktree. The guardian reads the groups from a
pipe that only the one it guards can write to; the end of the pipe is that one's end. With no
group left it ends at once, so it never outlives a process that has ended by itself. The private
folders of the commands that it ended go, too.
"""

import contextlib
import os
import subprocess
from collections.abc import Callable, Sequence

# POSIX sh, with `sleep` and `rm` as the only programs. A group is followed for ten seconds at
# most. A group is a number, so that it can be part of a variable's name.
_SCRIPT = r"""
trap '' INT TERM HUP
groups=
while read -r verb group folder; do
    others=
    for other in $groups; do [ "$other" = "$group" ] || others="$others $other"; done
    groups=$others
    [ "$verb" = begin ] && groups="$groups $group" && eval "folder_$group=\$folder"
done
orphans=$groups
tidy() {
    for group in $orphans; do
        eval "folder=\$folder_$group"
        [ -z "$folder" ] || rm -rf -- "$folder"
    done
}
for group in $groups; do kill -s TERM -- "-$group"; kill -s CONT -- "-$group"; done
for second in 1 2 3 4 5 6 7 8 9 10; do
    alive=
    for group in $groups; do kill -s 0 -- "-$group" && alive="$alive $group"; done
    groups=$alive
    [ -n "$groups" ] || { tidy; exit 0; }
    sleep 1
done
for group in $groups; do kill -s KILL -- "-$group"; done
tidy
"""
# How long to wait for its end: with no group left it ends at once, whatever that takes here.
_SECONDS, _SECONDS_WITH_GROUPS = 30.0, 1.0


class Guardian:
    """The process, from `start` to `close`."""

    def __init__(self, notice: Callable[[str], None], what: str = "this worker") -> None:
        """`what` is killed, in the words of the notice."""
        self._notice, self._what = notice, what
        self._process: subprocess.Popen[bytes] | None = None
        self._groups: set[int] = set()

    def start(self, locks: Sequence[int] = ()) -> None:
        """Where it cannot be started, one goes without, and says so.

        `locks` are descriptors of locks that are to stay held until the groups have ended.
        """
        try:
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", _SCRIPT, "inbox-orch-guardian"],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                cwd="/",
                start_new_session=True,
                pass_fds=locks,
            )
        except OSError as error:
            self._lost(error)

    def begin(self, group: int, folder: str | None) -> None:
        """This group must not outlive this process, nor must its private folder."""
        self._groups.add(group)
        # A name with a line end cannot be told in a line; such a folder stays.
        named = folder if folder is not None and "\n" not in folder else ""
        self._tell(f"begin {group} {named}\n")

    def end(self, group: int) -> None:
        """This group is empty; its number means nothing any more."""
        self._groups.discard(group)
        self._tell(f"end {group}\n")

    def close(self) -> None:
        """The process ends. Only groups that it could not end keep the guardian for a while."""
        if self._process is None:
            return
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_SECONDS_WITH_GROUPS if self._groups else _SECONDS)

    def _tell(self, line: str) -> None:
        if self._process is None:
            return
        assert self._process.stdin is not None
        try:
            os.write(self._process.stdin.fileno(), os.fsencode(line))
        except OSError as error:
            self._process = None
            self._lost(error)

    def _lost(self, error: OSError) -> None:
        self._notice(
            f"no guardian ({error.strerror}): should {self._what} be killed, "
            "its commands would run on"
        )
