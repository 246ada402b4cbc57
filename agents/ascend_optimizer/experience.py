"""One piece of optimisation experience: a motif whose effect was measured."""

from __future__ import annotations

import re
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from ascend_gym.core.digest import digest_of

EXPERIENCE_VERSION: Literal[1] = 1


class ProfileChange(BaseModel):
    """One figure of the profile (name as in msprof) without the motif and with it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    metric: str
    before: float
    after: float


_METRIC_GROUPS = {
    "launch": re.compile(r"^block_dim$"),
    "vector": re.compile(r"^aiv_vec_"),
    "scalar": re.compile(r"^ai[vc]_scalar_"),
    "reads": re.compile(r"^ai[vc]_mte2_|^gm_to_"),
    "writes": re.compile(r"^aiv_mte3_|^ub_to_gm_"),
    "cube": re.compile(r"^aic_(?:mac|mte1)_"),
    "results": re.compile(r"^aic_fixpipe_|^l0c_to_gm_"),
}


class Provenance(BaseModel):
    """Where a piece of experience comes from.

    Attributes:
        chip: chip that measured it.
        model: model that proposed the rewind and told it.
        seed: seed of the bank's construction.
        slow_digest: digest of the candidate without the motif.
        fast_digest: digest of the candidate with the motif.
        backend: what measured it, such as ``simulator`` or ``cann``; ``None`` in old banks.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    chip: str
    model: str
    seed: int
    slow_digest: str
    fast_digest: str
    backend: str | None = Field(default=None, exclude_if=lambda value: value is None)

    @property
    def measured_by(self) -> str:
        """Chip and backend in words."""
        return f"{self.chip} by {self.backend}" if self.backend else self.chip


class Experience(BaseModel):
    """An optimisation tuple: <title, description, bottleneck, code diff> of version 1 of the paper (section
    3.4.1, equation 4), with the applicability, expected effect and further fields of version 2.

    Attributes:
        operator: id of the operator that was rewound.
        motif: short name of the motif, such as ``double_buffer``; free text in lower case with underscores.
        family: canonical family, such as ``kernel.pipelining.double_buffer``.
        title: one line.
        description: what the fast version does, and how.
        bottleneck: the symptom that calls for it; the retrieval key of version 1.
        applicability: code and shapes for which it helps; part of the retrieval key of version 2.
        expected_effect: what changes in the profile.
        root_mechanism: why the slow version is slow.
        causal_chain: from the code to the latency, step by step.
        slow_us: latency without the motif, in microseconds.
        fast_us: latency with it, in microseconds.
        profile_evidence: figures of the profile that changed, the most telling first.
        keywords: words to find it by.
        reusable_when: conditions under which it can be used again.
        avoid_when: conditions under which it cannot.
        reuse_guidance: how to apply it to another operator.
        code_diff: unified diff from the slow to the fast version.
        provenance: where it comes from.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: Literal[1] = EXPERIENCE_VERSION
    operator: str = Field(min_length=1)
    motif: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    family: str = Field(pattern=r"^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*$")
    title: str = Field(min_length=1)
    description: str
    bottleneck: str = Field(min_length=1)
    applicability: str
    expected_effect: str
    root_mechanism: str
    causal_chain: tuple[str, ...]
    slow_us: float = Field(gt=0)
    fast_us: float = Field(gt=0)
    profile_evidence: tuple[ProfileChange, ...]
    keywords: tuple[str, ...]
    reusable_when: tuple[str, ...]
    avoid_when: tuple[str, ...]
    reuse_guidance: str
    code_diff: str = Field(min_length=1)
    provenance: Provenance

    @model_validator(mode="after")
    def _the_motif_helps(self) -> Experience:
        if self.fast_us >= self.slow_us:
            raise ValueError(f"the fast version ({self.fast_us} us) must be faster than {self.slow_us} us")
        return self

    @property
    def speedup(self) -> float:
        """Latency without the motif over that with it; above 1."""
        return self.slow_us / self.fast_us

    @property
    def metric_groups(self) -> tuple[str, ...]:
        """Parts of the profile that the motif affects: times, counts and sizes; shares follow from these."""
        told = [change.metric for change in self.profile_evidence if not change.metric.endswith("_ratio")]
        return tuple(group for group, names in _METRIC_GROUPS.items() if any(map(names.search, told)))

    @property
    def digest(self) -> str:
        """Identity: the pair of candidates and what is told of them."""
        return digest_of("experience", self.model_dump_json())
