"""Coding agents by name: what they are called with, and what is read from what they print.

Owns what is known of their command lines (`agents.toml`), and the small program that runs one of
them for a task. Knows nothing of threads or runs: outcomes are exit codes and files.
"""
