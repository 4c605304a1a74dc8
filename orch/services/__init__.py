"""What the scheduler does in one transaction each.

A service opens the transaction, fixes one `now`, calls the store, appends the events and returns
frozen values. It holds no SQL, prints nothing, and knows no flags.
"""
