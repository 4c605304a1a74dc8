"""Councils: what reviewers reply, and what a set of replies comes to.

Functions of their arguments alone: no I/O, no clock, no database, no terminal. The seats, the
threads and the commands of a council are the affair of the services.
"""
