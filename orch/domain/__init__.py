"""The rules of runs, tasks and attempts: states, transitions, failure policy, tally.

Pure functions and frozen types. No I/O, no clock, no environment, no SQL, no git, no terminal.
"""
