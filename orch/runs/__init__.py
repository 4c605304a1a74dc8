"""Runs and their tasks: what they are, what may follow what, planning, and their rows."""
