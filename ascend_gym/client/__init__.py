"""Evaluator over ZeroMQ and automatic start of a private local daemon."""
