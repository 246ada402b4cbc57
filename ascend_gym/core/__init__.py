"""Records, status table, errors, digests and protocols that all other layers build on.

Depends only on the standard library and pydantic, so importing it is cheap.
"""
