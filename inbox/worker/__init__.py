"""`inbox work`: runs a command for each claimed thread, and keeps its lease alive meanwhile.

Owns the child processes. Changes threads by way of services alone.
"""
