"""Imports operators of cann-ops from their aclnn examples, as manifests with data files.

The programs of an example (``gen_data.py``, ``main.cpp``) are untrusted code. They run only here, once,
with limits and confined like candidates. Their output becomes an ``op.toml`` and files below
``data/``, and no other part of the project runs them.
"""
