"""Episodes as conversations, for trainers of language models."""
