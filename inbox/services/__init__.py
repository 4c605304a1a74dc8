"""What the bus does: each public method opens one transaction and returns frozen values.

The methods are grouped by who calls them; `Bus` in `inbox.bus` joins the groups.
"""
