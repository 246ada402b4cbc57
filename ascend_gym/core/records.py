"""Frozen records that travel between agents, environment, daemon and store; import them from here.

Two families: what is asked (``request_records``) and what is answered (``result_records``). A record that
breaks its own rules cannot be built.
"""

from ascend_gym.core.request_records import (
    RECORD_VERSION,
    AttributeValue,
    Candidate,
    Case,
    DType,
    EvalRequest,
    MeasureProtocol,
    OpSpec,
    Record,
    SourceFile,
    Sources,
    TensorSpec,
    Tolerance,
    ValueRange,
)
from ascend_gym.core.result_records import (
    Accuracy,
    CaseResult,
    Charge,
    DaemonInfo,
    DeviceInfo,
    Diagnostic,
    EvalResult,
    Launch,
    Lease,
    Phase,
    PhaseSeconds,
    Profile,
    failed_result,
)

__all__ = [
    "RECORD_VERSION",
    "Accuracy",
    "AttributeValue",
    "Candidate",
    "Case",
    "CaseResult",
    "Charge",
    "DType",
    "DaemonInfo",
    "DeviceInfo",
    "Diagnostic",
    "EvalRequest",
    "EvalResult",
    "Launch",
    "Lease",
    "MeasureProtocol",
    "OpSpec",
    "Phase",
    "PhaseSeconds",
    "Profile",
    "Record",
    "SourceFile",
    "Sources",
    "TensorSpec",
    "Tolerance",
    "ValueRange",
    "failed_result",
]
