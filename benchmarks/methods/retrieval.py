"""How well each embedder finds the motif that a bottleneck calls for.

The queries (tests/data/retrieval_queries.jsonl) were written for this purpose, as an engineer would describe
a symptom; each has the motifs that answer it. They were not tuned on any embedder, but whoever wrote them
also wrote the general knowledge of the offline model: expect less from symptoms in foreign words.

Reports top-1 and top-3 hit rate and the mean reciprocal rank (MRR) among the motifs of the bank, for both
retrieval keys. Prints a table on standard error and one JSON document on standard output.

    python benchmarks/methods/retrieval.py --embedder lexical --embedder minilm
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from agents.ascend_optimizer.bank import ExperienceBank, bank_at
from agents.ascend_optimizer.embedders import retriever_named
from agents.ascend_optimizer.retrieval import ExperienceRetriever, RandomRetriever, RetrievalKey

QUERIES = Path(__file__).resolve().parents[2] / "tests" / "data" / "retrieval_queries.jsonl"
RANDOM = "random"
_RANDOM_SEEDS = 50


@dataclass(frozen=True)
class Query:
    """A symptom and the motifs that answer it."""

    text: str
    motifs: frozenset[str]


def main() -> int:
    """Measure, print, and return the exit status."""
    arguments = _parse()
    bank = bank_at(arguments.bank)
    queries = answerable(read_queries(arguments.queries), bank)
    rows = list(_rows(arguments.embedder, bank, queries))
    print(f"{len(bank)} experiences, {len(bank.motifs)} motifs, {len(queries)} queries", file=sys.stderr)
    for row in rows:
        rates = f"top-1 {row['top_1']:.2f}  top-3 {row['top_3']:.2f}  MRR {row['mrr']:.2f}"
        print(f"{row['embedder']:<12}{row['key']:<26}{rates}  {row['ms_per_query']:.2f} ms", file=sys.stderr)
    print(json.dumps({"bank": bank.digest, "queries": len(queries), "rows": rows}, indent=2))
    return 0


def read_queries(path: Path = QUERIES) -> list[Query]:
    """Read the labelled queries."""
    records = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return [Query(record["query"], frozenset(record["motifs"])) for record in records]


def answerable(queries: list[Query], bank: ExperienceBank) -> list[Query]:
    """Return the queries that the bank can answer: those with a motif that it knows."""
    return [query for query in queries if query.motifs & set(bank.motifs)]


def rank(retriever: ExperienceRetriever, query: Query, motifs: int) -> int:
    """Return the place, from 1, of the first right motif among all motifs of the bank."""
    found = [each.experience.motif for each in retriever.top(query.text, motifs)]
    return next(place for place, motif in enumerate(found, 1) if motif in query.motifs)


def _rows(embedders: list[str], bank: ExperienceBank, queries: list[Query]) -> Iterator[dict[str, Any]]:
    for name in embedders:
        for key in RetrievalKey:
            retriever = retriever_named(name, bank, key)
            yield {"embedder": name, "key": key.value, **_measured([retriever], bank, queries)}
    random = [RandomRetriever(bank, seed) for seed in range(_RANDOM_SEEDS)]
    yield {"embedder": RANDOM, "key": "", **_measured(random, bank, queries)}


def _measured(retrievers: list[Any], bank: ExperienceBank, queries: list[Query]) -> dict[str, float]:
    began = time.perf_counter()
    ranks = [rank(retriever, query, len(bank.motifs)) for retriever in retrievers for query in queries]
    seconds = time.perf_counter() - began
    return {
        "top_1": fmean(place <= 1 for place in ranks),
        "top_3": fmean(place <= 3 for place in ranks),
        "mrr": fmean(1 / place for place in ranks),
        "ms_per_query": seconds / len(ranks) * 1e3,
    }


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bank", type=Path, help="bank; by default the one that ships")
    parser.add_argument("--queries", type=Path, default=QUERIES, help="labelled queries, JSON lines")
    parser.add_argument(
        "--embedder", action="append", help="'lexical', 'minilm' or a model at $OPENAI_BASE_URL; repeatable"
    )
    arguments = parser.parse_args()
    arguments.embedder = arguments.embedder or ["lexical"]
    return arguments


if __name__ == "__main__":
    sys.exit(main())
