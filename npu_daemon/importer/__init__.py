"""Reads operators of cann-ops through their aclnn examples and writes them as manifests with data files.

The programs of an example (``gen_data.py``, ``main.cpp``) are code of its author. They run here alone, once,
within limits and confined as candidates are; what they say ends up in an ``op.toml`` and in files below
``data/``, and nothing else of the project runs them.
"""
