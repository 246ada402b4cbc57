"""Records, status table, errors, digests and protocols that every other layer is built from.

Depends on the standard library and pydantic only, so that importing it costs little.
"""
