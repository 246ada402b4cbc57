"""Sweeps over operators, methods and seeds, and the store of their results."""
