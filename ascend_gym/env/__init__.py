"""The gymnasium environment AscendOp-v0."""
