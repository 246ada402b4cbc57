"""Experiences for tests."""

from agents.ascend_optimizer.experience import Experience, ProfileChange, Provenance


def make_diff(change: str = "    Wait();", path: str = "op_kernel/toy.cpp", site: str = "Compute") -> str:
    """Return a unified diff that removes a line from a function."""
    header = f"--- a/{path}\n+++ b/{path}\n@@ -3,4 +3,3 @@\n"
    return f"{header} void {site}()\n {{\n-{change}\n     Add(d, a, b, n);\n }}\n"


def make_experience(**fields: object) -> Experience:
    """Return an experience in which fields, ``chip``, ``slow`` and ``fast`` can be chosen."""
    provenance = Provenance(
        chip=str(fields.pop("chip", "910B2")),
        model="offline",
        seed=0,
        slow_digest=str(fields.pop("slow", "a" * 64)),
        fast_digest=str(fields.pop("fast", "b" * 64)),
    )
    values = {
        "operator": "core/toy",
        "motif": "barrier_removal",
        "family": "kernel.pipelining.barrier_removal",
        "title": "Let the pipes run",
        "description": "The barrier between copy and compute is not there.",
        "bottleneck": "Pipes wait for each other at a PipeBarrier<PIPE_ALL>.",
        "applicability": "Queues order what depends on each other.",
        "expected_effect": "aiv_vec_ratio rises.",
        "root_mechanism": "PIPE_ALL stops all pipes.",
        "causal_chain": ("barrier", "wait"),
        "slow_us": 12.0,
        "fast_us": 10.0,
        "profile_evidence": (ProfileChange(metric="aiv_time", before=12.0, after=10.0),),
        "keywords": ("barrier",),
        "reusable_when": ("a queue orders the copies",),
        "avoid_when": ("raw tensors are shared",),
        "reuse_guidance": "Remove it.",
        "code_diff": make_diff(),
        "provenance": provenance,
        **fields,
    }
    return Experience.model_validate(values)
