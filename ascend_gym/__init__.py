"""Research platform for optimising Ascend C operators. Importing it registers ``AscendOp-v0``."""
