"""Evaluation on real NPUs: the parts of the CANN backend. See ``docs/cann.md``."""
