"""The SQL of the scheduler, in named statements.

Every helper is given the session of the transaction that it belongs to, and never commits.
"""
