"""The main job from start to end, offline: real git, real worker processes, a real run.

Everything goes through the commands that a user would type; nothing is simulated but the
agents, which are a shell script.
"""
