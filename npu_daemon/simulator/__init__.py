"""The Ascend C simulator: C++ headers and programs, and their Python drivers."""
