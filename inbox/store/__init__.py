"""The SQL of the bus. Helpers are given a connection, and never begin or commit."""
