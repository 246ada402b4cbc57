"""Backends that build, run and measure candidates behind one interface."""
