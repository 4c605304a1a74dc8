"""What a block that postpones signals makes of them, in a process of its own."""

import signal
import subprocess
import sys

import pytest

RUN = """
import os, signal, sys, threading
from inbox_orch.shared.processes.signals import Signalled, listen, postponed

listen()
me = os.getpid()

def say(text):
    print(text, flush=True)

def alone():
    with postponed():
        os.kill(me, signal.SIGTERM)
        say("in the block")
    say("after it")

def nested():
    with postponed():
        with postponed():
            os.kill(me, signal.SIGINT)
            say("in the inner block")
        say("in the outer block")
    say("after it")

def beside_an_error():
    with postponed():
        os.kill(me, signal.SIGTERM)
        raise ValueError("of the block")

def twice():
    with postponed():
        os.kill(me, signal.SIGTERM)
        os.kill(me, signal.SIGINT)
        say("in the block")

def none():
    with postponed():
        say("in the block")
    say("after it")
    os.kill(me, signal.SIGTERM)
    say("never")

class Finalized:
    def __del__(self):
        signal.setitimer = lambda *arguments: say("an alarm is set")
        os.kill(me, signal.SIGTERM)

def met_a_finalizer_before():
    Finalized()
    with postponed():
        signal.raise_signal(signal.SIGALRM)
        say("in the block")
    say("after it")

def met_a_finalizer_before_others_listened():
    Finalized()
    signal.signal(signal.SIGTERM, lambda number, frame: say(f"noted {number}"))
    signal.raise_signal(signal.SIGALRM)
    say("goes on")

def met_a_finalizer_and_came_again():
    Finalized()
    os.kill(me, signal.SIGINT)
    say("never")

def another_thread():
    inside, goes_on = threading.Event(), threading.Event()
    def hold():
        with postponed():
            inside.set()
            goes_on.wait()
    thread = threading.Thread(target=hold, daemon=True)
    thread.start()
    inside.wait()
    os.kill(me, signal.SIGTERM)
    say("never")

try:
    globals()[sys.argv[1]]()
except Signalled as signalled:
    say(f"raised {signalled.number}")
"""


@pytest.mark.parametrize(
    "how, code, said",
    [
        ("alone", 0, ["in the block", "raised 15"]),
        ("nested", 0, ["in the inner block", "in the outer block", "raised 2"]),
        ("beside_an_error", 0, ["raised 15"]),
        ("twice", 128 + signal.SIGINT, []),
        ("none", 0, ["in the block", "after it", "raised 15"]),
        ("met_a_finalizer_before", 0, ["an alarm is set", "in the block", "raised 15"]),
        (
            "met_a_finalizer_before_others_listened",
            0,
            ["an alarm is set", "noted 15", "goes on"],
        ),
        ("met_a_finalizer_and_came_again", 128 + signal.SIGINT, ["an alarm is set"]),
        ("another_thread", 0, ["raised 15"]),
    ],
)
def test_the_first_is_raised_at_the_end_and_a_second_ends_the_process(how, code, said):
    done = subprocess.run([sys.executable, "-P", "-c", RUN, how], capture_output=True, text=True)
    assert (done.returncode, done.stdout.splitlines(), done.stderr) == (code, said, "")
