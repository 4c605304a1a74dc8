"""Commands as tools for the client of an agent."""
