"""`orch gate`: the commands about gates."""
