"""The gymnasium environment: an episode of rewriting one operator under a budget of evaluations."""
