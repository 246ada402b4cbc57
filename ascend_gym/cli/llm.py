"""``ascend-gym llm``: language models."""

from __future__ import annotations

from typing import Annotated

import typer

app = typer.Typer(rich_markup_mode=None, no_args_is_help=True, help="Language models.")


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
