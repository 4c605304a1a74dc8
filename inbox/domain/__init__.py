"""The rules of the bus: states, leases, destinations, limits, folding. Pure, no I/O."""
