"""Drafts programs of the staged language from the reference of an operator, by rules and without a model."""
