"""What the bus and the scheduler both stand on.

Owns the database file, events, clocks, ids, errors, output, bells and waits,
artifacts, and finding the project. Knows nothing of threads, runs or tasks.
"""
