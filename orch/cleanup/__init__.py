"""Taking worktrees away, with nothing lost, and bringing back what was kept."""
