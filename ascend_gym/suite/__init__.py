"""Operators as data: loader, inputs, numpy oracles and verdicts."""
