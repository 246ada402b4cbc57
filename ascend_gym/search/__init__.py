"""The propose, evaluate, observe driver with its ledger, journal and language models."""
