"""Everything that is found wrong with a program before anything is built or charged."""

from __future__ import annotations

from collections.abc import Sequence

from ascend_gym.core.records import Case, OpSpec
from ascend_gym.staged.interpret import interpret
from ascend_gym.staged.parse import parse
from ascend_gym.staged.syntax import StagedError
from ascend_gym.staged.verify import Verified, verify
from ascend_gym.suite.oracle import oracle_for
from ascend_gym.suite.skeleton import interface_of

INPUT_SEED = 0


def checked(spec: OpSpec, text: str, cases: Sequence[Case] = ()) -> Verified:
    """Return a program that is verified, and whose outputs agree with the reference when interpreted.

    Args:
        spec: the operator.
        text: the program.
        cases: cases to check it on; none for the public ones.

    Raises:
        StagedError: it breaks a rule, or computes something else; the message says what to do.
    """
    cases = tuple(cases) or spec.cases
    verified = verify(parse(text), interface_of(spec), cases)
    oracle = oracle_for(spec)
    for case in sorted(cases, key=lambda each: each.traffic_bytes):
        inputs = oracle.inputs(case, INPUT_SEED)
        outputs = interpret(verified, case, [arrays[0] for arrays in inputs])
        verdict = oracle.judge(case, [[array] for array in outputs], oracle.expected(case, inputs))
        if not verdict.correct:
            raise StagedError(
                0, f"case {case.case_id}: the program computes something else: {verdict.message}"
            )
    return verified
