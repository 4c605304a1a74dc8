"""`inbox work`: runs a command for each claimed thread, and keeps its lease alive meanwhile.

Owns the child processes, their files and the event loop. Changes threads by way of services
alone, and prints nothing: what happens is handed to the caller.
"""
