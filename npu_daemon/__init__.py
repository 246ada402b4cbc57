"""Evaluation daemon: broker, workers and the backends that measure Ascend C operators."""
