"""The language models of a run, recorded next to its journal, charged to its ledger; ``ascend-gym llm``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from ascend_gym.cli.methods import RunSettings
from ascend_gym.core.config import cache_root
from ascend_gym.core.errors import MisuseError
from ascend_gym.core.protocols import Embedder, Llm, Message
from ascend_gym.search.ledger import BudgetLedger
from ascend_gym.search.llm import OFFLINE_MODEL, embedder_named, model_named
from ascend_gym.search.llm.cassette import CassetteLlm, CassetteMode
from ascend_gym.search.llm.limits import CallLimits
from ascend_gym.search.llm.metering import MeteredLlm, Price, SweepMeteredLlm
from ascend_gym.search.llm.shared_limits import SharedBudget
from ascend_gym.search.model_client import TIMEOUT_S, ModelClient
from ascend_gym.sweep.jobs import SweepJob

ANSWERS_NAME = "answers.jsonl"
_RATES = "rates"
_PREFLIGHT_TOKENS = 16

app = typer.Typer(rich_markup_mode=None, no_args_is_help=True, help="Language models.")


@dataclass(frozen=True)
class ModelAccess:
    """How to reach models; does not affect the outcome of a run.

    Attributes:
        base_url: address of the endpoint; ``None`` for that of the environment variable.
        limits: retries, rate limits and size limits of calls.
        concurrency: maximum number of simultaneous questions.
        cassette: file of recorded answers, to read and extend.
        replay: whether to take all answers from ``cassette`` and ask no model.
        timeout_s: seconds for one answer, including retries and rate limiting.
        sweep_account: file in which all runs of a sweep keep what they have spent; ``None`` for a run alone.
        sweep_tokens: tokens that they may spend in all; ``None`` for no limit.
        sweep_usd: US dollars that they may spend in all; ``None`` for no limit.
    """

    base_url: str | None = None
    limits: CallLimits = field(default_factory=CallLimits)
    concurrency: int = 1
    cassette: Path | None = None
    replay: bool = False
    timeout_s: float = TIMEOUT_S
    sweep_account: Path | None = None
    sweep_tokens: int | None = None
    sweep_usd: float | None = None

    @property
    def shared_budget(self) -> SharedBudget | None:
        """What all runs of a sweep may spend together; ``None`` for a run alone."""
        if self.sweep_account is None:
            return None
        return SharedBudget(self.sweep_account, tokens=self.sweep_tokens, usd=self.sweep_usd)

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> ModelAccess:
        """Return what the options of a command say, by their names; those that it does not have are default.

        Raises:
            MisuseError: answers are to be taken from a file, and none is named.
        """
        cassette, replay = options.get("cassette"), options.get("replay", False)
        if replay and cassette is None:
            raise MisuseError("--replay needs --cassette FILE, the answers to take")
        limits = CallLimits(
            requests_per_minute=options["requests_per_minute"],
            tokens_per_minute=options["tokens_per_minute"],
            shared_rates=cache_root() / _RATES if options.get("shared_rates") else None,
        )
        if "concurrency" in options:
            limits = replace(limits, max_concurrent=options["concurrency"])
        return cls(
            base_url=options["base_url"],
            limits=limits,
            concurrency=options.get("concurrency", 1),
            cassette=cassette,
            replay=replay,
            timeout_s=options["timeout"],
            sweep_account=options.get("sweep_account"),
            sweep_tokens=options.get("sweep_tokens"),
            sweep_usd=options.get("sweep_usd"),
        )


@dataclass(frozen=True)
class Models:
    """Models of a run: ``online`` for the search, ``offline`` for preparations made once per operator.

    ``embedder`` returns the embedding model of a given name.
    """

    online: ModelClient
    offline: ModelClient
    embedder: Callable[[str], Embedder]


@contextmanager
def opened_models(
    settings: RunSettings, access: ModelAccess, ledger: BudgetLedger, folder: Path
) -> Iterator[Models]:
    """Open the models that ``settings`` name.

    Answers of an endpoint are kept in ``folder``, so that a resumed run asks nothing twice.

    Args:
        settings: settings of the run.
        access: how to reach models.
        ledger: account that calls are charged to.
        folder: folder of the run.

    Raises:
        MisuseError: there is no endpoint, a cassette cannot be read, or a price is missing.
    """
    price = Price.parsed(settings.price) if settings.price else None
    with ExitStack() as opened:

        def model_client(name: str) -> ModelClient:
            llm = _recorded(name, settings, access, folder, opened)
            metered = MeteredLlm(llm, ledger, Price() if _is_free(name, access) else price)
            return ModelClient(
                metered,
                seed=settings.seed,
                max_tokens=settings.max_tokens,
                deadline_s=access.timeout_s,
                concurrency=access.concurrency,
            )

        online = model_client(settings.model)
        same = settings.offline_model in (None, settings.model)
        offline = online if same else model_client(settings.offline_model or settings.model)
        yield Models(online, offline, lambda name: _recorded_embedder(name, access, folder, opened))


def preflight(jobs: Iterable[SweepJob], access: ModelAccess) -> list[str]:
    """Ask each model of runs for one word; return a line for each that answered.

    Raises:
        ModelRefusedError: a model does not exist, its key is refused, or nothing is left to spend.
        ModelError: a model cannot be reached.
        MisuseError: there is no endpoint, or its address cannot be right.
    """
    asked: dict[tuple[str, str | None], str] = {}
    for job in jobs:
        settings = RunSettings.model_validate_json(job.settings)
        for name in dict.fromkeys((settings.model, settings.offline_model or settings.model)):
            if _is_free(name, access) or (name, settings.reasoning_effort) in asked:
                continue
            llm: Llm = model_named(
                name,
                base_url=access.base_url,
                reasoning_effort=settings.reasoning_effort,
                limits=access.limits,
            )
            shared = access.shared_budget
            if shared is not None:
                llm = SweepMeteredLlm(llm, shared, Price.parsed(settings.price) if settings.price else None)
            word = Message("user", "Answer with the word: ready")
            answer = llm.complete([word], seed=0, max_tokens=_PREFLIGHT_TOKENS, deadline_s=access.timeout_s)
            asked[name, settings.reasoning_effort] = f"model {name!r} answers, as {answer.model!r}"
    return list(asked.values())


def _is_free(name: str, access: ModelAccess) -> bool:
    """Return whether the model is the offline one of this process, which costs no money."""
    return name == OFFLINE_MODEL and access.base_url is None


def _recorded(name: str, settings: RunSettings, access: ModelAccess, folder: Path, opened: ExitStack) -> Llm:
    """Return the model of that name with recorded answers; the offline model costs nothing to ask again."""
    if _is_free(name, access):
        return model_named(name)
    words = [name]
    if settings.temperature is not None:
        words.append(f"at temperature {settings.temperature}")
    if settings.reasoning_effort is not None:
        words.append(f"with reasoning effort {settings.reasoning_effort}")
    llm: Llm | None = None
    if not access.replay:
        llm = model_named(
            name,
            base_url=access.base_url,
            temperature=settings.temperature,
            reasoning_effort=settings.reasoning_effort,
            limits=access.limits,
        )
        shared = access.shared_budget
        if shared is not None:
            llm = SweepMeteredLlm(llm, shared, Price.parsed(settings.price) if settings.price else None)
    for path, mode in _tapes(access, folder):
        llm = cassette = CassetteLlm(llm, path, mode, model=" ".join(words))
        opened.callback(cassette.close)
    return cassette


def _recorded_embedder(name: str, access: ModelAccess, folder: Path, opened: ExitStack) -> Embedder:
    """Return an embedding model that caches its vectors in the files of recorded answers."""
    from ascend_gym.search.llm.embeddings import CassetteEmbedder, embedding_name

    embedder: Embedder | None = None
    if not access.replay:
        embedder = embedder_named(name, base_url=access.base_url, limits=access.limits)
    for path, mode in _tapes(access, folder):
        embedder = cassette = CassetteEmbedder(embedder, path, mode, name=embedding_name(name))
        opened.callback(cassette.close)
    return cassette


def _tapes(access: ModelAccess, folder: Path) -> list[tuple[Path, CassetteMode]]:
    """Return the files of recorded answers, from the one that is asked last to the run's own, asked first."""
    own = (folder / ANSWERS_NAME, CassetteMode.RESUME)
    if access.cassette is None:
        return [own]
    return [(access.cassette, CassetteMode.REPLAY if access.replay else CassetteMode.RECORD), own]


@app.callback()
def llm() -> None:
    """Language models."""


@app.command("serve")
def llm_serve(
    model: Annotated[str, typer.Option(help="'offline', or a model at $OPENAI_BASE_URL.")] = "offline",
    host: Annotated[
        str, typer.Option(help="Address to listen on; there is no authentication.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 picks one.")] = 0,
) -> None:
    """Serve a model over HTTP in the OpenAI format until interrupted; prints the base URL."""
    from ascend_gym.search.llm import model_named
    from ascend_gym.search.llm.server import LlmServer, stop_signals

    with stop_signals() as stop, LlmServer({model: model_named(model)}, host=host, port=port) as server:
        typer.echo(server.base_url)
        stop.wait()
