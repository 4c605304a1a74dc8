"""Attempts: their kinds, dispatch, what becomes of them, and what is accepted."""
