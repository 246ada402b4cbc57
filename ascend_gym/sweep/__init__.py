"""Sweeps over operators, methods and seeds, and the results store."""
