"""Names of traced instructions as kernels call them."""

_CALLS = {
    "CopyGmToUb": "DataCopy(GM->UB)",
    "CopyUbToGm": "DataCopy(UB->GM)",
    "CopyUbToUb": "DataCopy(UB->UB)",
    "CopyGmToL1": "DataCopy(GM->L1)",
    "CopyL1ToGm": "DataCopy(L1->GM)",
    "CopyL0cToGm": "Fixpipe(L0C->GM)",
    "CopyL0cToL1": "Fixpipe(L0C->L1)",
    "CopyL1ToBias": "DataCopy(L1->C2)",
    "CopyL1ToFixpipe": "DataCopy(L1->C2PIPE2GM)",
    "FillL1": "Fill(L1)",
    "FillL0": "Fill(L0)",
    "LoadL0A": "LoadData(L1->L0A)",
    "LoadL0B": "LoadData(L1->L0B)",
    "ScalarAccess": "scalar access",
}


def call_name(instruction: str) -> str:
    """Return the call that issues an instruction of the trace; most have its name."""
    return _CALLS.get(instruction, instruction)
