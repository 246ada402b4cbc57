"""Frozen records that travel between agents, environment, daemon and store; import them from here.

Five families: what is asked about (``request_records``), what is asked (``evaluation_records``), what is
answered (``result_records``), what is known of a chip (``target_records``), and what the parts of a daemon
tell each other (``service_records``). A record that breaks its own rules cannot be built.
"""

from ascend_gym.core.evaluation_records import (
    EvalRequest,
    GivenArray,
    GivenCase,
    GivenOperator,
    MeasureProtocol,
)
from ascend_gym.core.request_records import (
    RECORD_VERSION,
    AttributeValue,
    Candidate,
    Case,
    DType,
    FrameworkCall,
    Injection,
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
    CoreTimes,
    DeviceInfo,
    Diagnostic,
    EvalResult,
    Launch,
    Phase,
    PhaseSeconds,
    Profile,
    failed_result,
)
from ascend_gym.core.service_records import (
    DaemonInfo,
    DaemonStatus,
    DeviceGrant,
    TenantStatus,
    WorkerCount,
)
from ascend_gym.core.target_records import (
    CopyCost,
    CubeCost,
    LaunchCost,
    ScalarCost,
    TargetSheet,
    VectorRate,
)

__all__ = [
    "RECORD_VERSION",
    "Accuracy",
    "AttributeValue",
    "Candidate",
    "Case",
    "CaseResult",
    "Charge",
    "CopyCost",
    "CoreTimes",
    "CubeCost",
    "DType",
    "DaemonInfo",
    "DaemonStatus",
    "DeviceGrant",
    "DeviceInfo",
    "Diagnostic",
    "EvalRequest",
    "EvalResult",
    "FrameworkCall",
    "GivenArray",
    "GivenCase",
    "GivenOperator",
    "Injection",
    "Launch",
    "LaunchCost",
    "MeasureProtocol",
    "OpSpec",
    "Phase",
    "PhaseSeconds",
    "Profile",
    "Record",
    "ScalarCost",
    "SourceFile",
    "Sources",
    "TargetSheet",
    "TenantStatus",
    "TensorSpec",
    "Tolerance",
    "ValueRange",
    "VectorRate",
    "WorkerCount",
    "failed_result",
]
