"""Profiles of operators and of programs that launch kernels: how they ran, and reports of it."""
