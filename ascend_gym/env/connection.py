"""The evaluator of an environment: the caller's, or a daemon that is connected at the first evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ascend_gym.core.errors import InfrastructureError
from ascend_gym.core.protocols import Evaluator
from ascend_gym.core.records import Diagnostic, EvalRequest, EvalResult, Phase, failed_result
from ascend_gym.core.status import Status
from ascend_gym.env.evaluation import evaluate_all


class Connection:
    """A lazily opened evaluator.

    A copy opens its own connection at its first evaluation. An evaluator of the caller is shared by deep
    copies, and pickled with the connection if possible.
    """

    def __init__(
        self, daemon: str | Sequence[str] | None, chip: str, evaluator: Evaluator | None = None
    ) -> None:
        """Prepare to connect, without opening anything yet.

        Args:
            daemon: one or several addresses; ``None`` uses those of the environment variable, else a private
                daemon.
            chip: chip of a private daemon.
            evaluator: the caller's own evaluator, which the caller closes.
        """
        self._daemon, self._chip = daemon, chip
        self._evaluator = evaluator
        self._owned = evaluator is None

    def __deepcopy__(self, memo: dict[int, Any]) -> Connection:
        return Connection(self._daemon, self._chip, None if self._owned else self._evaluator)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_evaluator": None if self._owned else self._evaluator}

    def evaluate(self, requests: Sequence[EvalRequest]) -> list[EvalResult]:
        """Return the results of all requests, in order.

        The evaluator bounds the wait: a silent daemon yields ``infra_error`` results. After a lost
        connection, the next evaluation reconnects or starts a new daemon.
        """
        if not requests:
            return []
        try:
            return evaluate_all(self._opened(), requests)
        except InfrastructureError as error:
            self.close()
            diagnostic = Diagnostic(phase=Phase.SERVICE, message=str(error))
            return [failed_result(request, Status.INFRA_ERROR, diagnostic) for request in requests]

    def close(self) -> None:
        """Close the evaluator and stop its private daemon, if this connection opened them."""
        if self._owned and self._evaluator is not None:
            self._evaluator.close()
            self._evaluator = None

    def _opened(self) -> Evaluator:
        if self._evaluator is None:
            from ascend_gym.client import DaemonOptions, connect  # sockets are needed only from here on

            self._evaluator = connect(self._daemon, options=DaemonOptions(chip=self._chip))
        return self._evaluator
