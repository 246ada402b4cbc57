"""The staged language: operators as Python text that is parsed, verified and lowered, never run."""
