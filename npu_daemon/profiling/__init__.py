"""Profiles of operators and of programs that launch kernels: runs, prices and reports."""
