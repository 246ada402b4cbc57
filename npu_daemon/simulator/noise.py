"""Samples that scatter as measurements do, from a latency that does not."""

from __future__ import annotations

import math
import random

from ascend_gym.core.digest import digest_of
from ascend_gym.core.records import Candidate, Case, MeasureProtocol
from ascend_gym.suite.cann_opdef import without_comments


def samples_us(
    latency_us: float, candidate: Candidate, case: Case, protocol: MeasureProtocol
) -> tuple[float, ...]:
    """Return ``protocol.repeats`` samples of a latency.

    With ``protocol.noise`` they are log-normal about it, so that half of them are slower. Noise belongs to
    case, seed, position and the code of the candidate: another comment or line break draws no other samples.
    Without, all samples are the latency.

    Args:
        latency_us: what the pricing model computed.
        candidate: what was priced.
        case: what it was priced on.
        protocol: number of samples, spread and seed.
    """
    if protocol.noise == 0:
        return (latency_us,) * protocol.repeats
    identity = digest_of("noise", protocol.noise_seed, _bare_code(candidate), case.case_id)
    source = random.Random(int(identity[:16], 16))
    return tuple(latency_us * math.exp(source.gauss(0.0, protocol.noise)) for _ in range(protocol.repeats))


def _bare_code(candidate: Candidate) -> dict[str, str]:
    """Return the sources by path without comments and white space."""
    return {path: "".join(without_comments(text).split()) for path, text in candidate.texts.items()}
