"""The SQL of the bus. Helpers are given a session, and never begin or commit."""
