"""What was begun and is not confirmed yet: written down before it is done, so that whoever comes
after a crash can finish it.
"""
