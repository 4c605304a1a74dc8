"""The scheduler: runs of dependent tasks, their attempts, worktrees and councils.

Stands on the public Python API of the bus, in the same transaction where both change. The bus
knows nothing of it.
"""
