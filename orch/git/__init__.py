"""Everything about git: worktrees, branches, bases, merges in memory, salvage.

The only package that imports GitPython. Decides nothing about tasks.
"""
