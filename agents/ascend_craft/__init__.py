"""AscendCraft: operators from their specification alone, by programs of the staged language."""
