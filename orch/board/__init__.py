"""The board: a run on the whole terminal.

Owns what `orch board` shows and what its keys do. What is shown are lines, which pure functions
make of a look at the run; textual, which this wing alone imports, lays them out and reads the keys.
Must not decide anything: the keys call what the commands call.
"""
