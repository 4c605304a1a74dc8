"""Reading what a gate said: a module for each way that failures are told. Pure."""
