"""Episodes as conversations: what trainers of language models need of the environment."""
