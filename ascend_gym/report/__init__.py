"""Metrics and human-readable summaries of runs."""
