"""Agents that optimise operators."""
