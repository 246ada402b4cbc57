"""What the offline model knows of why motifs help; the knowledge itself is in ``mechanisms.toml``."""

from __future__ import annotations

from functools import cache
from importlib.resources import as_file, files

from pydantic import BaseModel, ConfigDict, Field

from ascend_gym.core.toml_file import read_toml
from ascend_gym.rewrites.rule import Family


class Mechanism(BaseModel):
    """Why a kind of motif helps, in general.

    Attributes:
        motifs: rewrite rules that it explains.
        family: family whose other rules it explains.
        title: what the fast version does, in one line.
        symptom: how the slow version shows in profile and code.
        applicability: code and shapes for which it helps.
        mechanism: why the slow version is slow.
        effect: what changes in the profile.
        chain: from the code to the latency.
        keywords: words to find it by.
        reusable_when: conditions under which it can be used.
        avoid_when: conditions under which it cannot.
        guidance: how to apply it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    motifs: tuple[str, ...] = ()
    family: Family | None = None
    title: str = Field(min_length=1)
    symptom: str = Field(min_length=1)
    applicability: str = Field(min_length=1)
    mechanism: str = Field(min_length=1)
    effect: str = Field(min_length=1)
    chain: tuple[str, ...] = Field(min_length=1)
    keywords: tuple[str, ...] = Field(min_length=1)
    reusable_when: tuple[str, ...] = Field(min_length=1)
    avoid_when: tuple[str, ...] = Field(min_length=1)
    guidance: str = Field(min_length=1)


def mechanism_of(motif: str, family: Family) -> Mechanism:
    """Return what is known of a motif, or of its family where nothing is known of itself."""
    known = mechanisms()
    own = [each for each in known if motif in each.motifs]
    return own[0] if own else next(each for each in known if each.family is family)


@cache
def mechanisms() -> tuple[Mechanism, ...]:
    """Return all that is known, in the order of the file."""
    with as_file(files(__package__) / "mechanisms.toml") as path:
        return tuple(Mechanism.model_validate(entry) for entry in read_toml(path)["mechanism"])
