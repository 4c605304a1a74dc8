"""Every change that is handed in: judged by a policy, and recorded."""
