"""What was begun and is not confirmed yet: written down before it is done, so that a later
process can finish it after a crash.
"""
