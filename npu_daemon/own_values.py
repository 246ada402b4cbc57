"""Values of a candidate's own: drawn from a seed that nobody can know before the candidate is written.

The seed is a digest of the candidate, of what its tiling program hands to its kernel, and of the case. It is
the same on every machine, so journals are, too. It is another one for each candidate, so nothing that a
result tells of these values helps the next one, and a table of answers would have to contain the digest of
the text that contains it. What the tiling program hands on is part of it because that program is free: it
could compute the digest of its own text, draw the values and hand the answers on, if handing them on did not
change the values.

Drawing values and computing the reference takes longer than a whole evaluation for large cases. Those are
judged and measured on the published values that all candidates share, unless their answers are few enough to
be written down.
"""

from __future__ import annotations

from ascend_gym.core.digest import digest_of
from ascend_gym.core.records import Case, EvalRequest, OpSpec
from npu_daemon.harness import HARNESS_VERSION

OWN_TRAFFIC_BYTES = 12 * 2**20
"""Cases that move no more are always drawn anew: 74 of 132 of core, in 3 of the 10 seconds that all take."""

FEW_ANSWERS_BYTES = 2**20
"""Outputs of no more bytes could stand in a source, compressed or not."""


def always_drawn(spec: OpSpec, case: Case) -> bool:
    """Return whether every candidate is judged and measured on values of its own, not only champions.

    Args:
        spec: operator.
        case: one of its cases.
    """
    answers_bytes = sum(tensor.size_bytes for tensor in case.outputs)
    cheap = case.traffic_bytes <= OWN_TRAFFIC_BYTES
    return cheap or answers_bytes <= FEW_ANSWERS_BYTES or spec.latency_depends_on_values


def own_seed(request: EvalRequest, case: Case, launch: str) -> int:
    """Return the seed of a candidate's own values.

    Args:
        request: holds the candidate, the operator's version and the seed of the protocol.
        case: case that they are drawn for; also the domain's.
        launch: digest of what the tiling program hands to the kernel; empty if it is not known before the
            run.
    """
    drawn_for = (request.folder_digest, case.case_id, request.protocol.input_seed, HARNESS_VERSION)
    return int(digest_of("own values", *drawn_for, request.candidate.digest, launch)[:15], 16)
