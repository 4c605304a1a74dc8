"""How a run stands, as values."""
