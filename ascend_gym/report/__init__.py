"""Summaries of evaluations and searches for people and scripts, and their display."""
