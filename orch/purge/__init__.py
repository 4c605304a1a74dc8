"""Taking a secret out of all that is stored, and saying where it could not be reached."""
