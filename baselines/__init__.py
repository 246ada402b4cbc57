"""Search methods as policies over the shared driver, ledger and journal; one file each."""
