"""Setting up coding agents: the skill, hooks, lines and the tool server, in each agent's own files.

What is known of an agent stands in `agents.toml`; nothing here knows one by its name. Files of
others get text inserted and nothing else: no byte of theirs is changed, and a record of what was
inserted takes it out again. Needs no database.
"""
