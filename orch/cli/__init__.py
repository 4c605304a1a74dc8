"""The commands of `orch`: flags, help texts, exit codes.

A command builds a request, calls one service and hands the result to the output. It holds no SQL
and no rules, and never prints.
"""
