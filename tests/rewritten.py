"""Applies rewrite rules to snippets, for tests that look at the exact text."""

from __future__ import annotations

from conftest import make_candidate

from ascend_gym.rewrites.library import REWINDS, RULES
from ascend_gym.rewrites.rule import Rule

HOST = "op_host/toy.cpp"
KERNEL = "op_kernel/toy.cpp"


def rule_named(name: str) -> Rule:
    """Return the rule or rewind with that name."""
    return next(rule for rule in (*RULES, *REWINDS) if rule.name == name)


def in_function(body: str) -> str:
    """Return a class with a function of that body, with four blanks of its own per level."""
    lines = "".join(f"        {line}\n" if line else "\n" for line in body.split("\n"))
    return f"class K {{\n    void Compute(uint32_t n)\n    {{\n{lines}    }}\n}};\n"


def rewrites(rule: Rule, tiling: str = "", kernel: str = "") -> list[tuple[str, str, dict[str, str]]]:
    """Return, for every site and choice, the site's and choice's labels and the texts after the rule."""
    candidate = make_candidate(tiling, kernel)
    return [
        (site.label, choice.label, rule.apply(candidate, site, choice).texts)
        for site in rule.sites(candidate)
        for choice in site.choices
    ]


def kernel_after(name: str, kernel: str) -> str:
    """Return the kernel after the only site's first choice."""
    candidate = make_candidate("", kernel)
    rule = rule_named(name)
    (site,) = rule.sites(candidate)
    return rule.apply(candidate, site, site.choices[0]).kernel_text


def tiling_after(name: str, tiling: str) -> str:
    """Return the host side after the only site's first choice."""
    candidate = make_candidate(tiling, "")
    rule = rule_named(name)
    (site,) = rule.sites(candidate)
    return rule.apply(candidate, site, site.choices[0]).tiling_text
