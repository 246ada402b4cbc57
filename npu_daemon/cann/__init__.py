"""Evaluation on real NPUs: what the CANN backend is made of. See ``docs/cann.md``."""
