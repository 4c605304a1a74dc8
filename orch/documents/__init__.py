"""Documents from outside, as files: the config of a run, plans. YAML and JSON, in and out.

Text in, frozen values of the domain out, or one error that lists every problem with its line.
Knows nothing of the database. Loads pydantic and PyYAML, so only the commands that are given a
document import it, and only then.
"""
