"""Running what has to succeed before work counts: checks, set-up, the checks of an integration."""
