"""Limits that processes share: rates of all runs of a host, money and tokens of all runs of a sweep.

Both live in a small JSON file that is read and replaced under a lock. Processes that die leave nothing behind
that others would wait for: a reservation counts only while the process that made it is alive.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ascend_gym.core.append_log import write_whole
from ascend_gym.core.errors import InfrastructureError, MisuseError, ModelRefusedError
from ascend_gym.search.ledger import Cost
from ascend_gym.search.llm.limits import WINDOW_S, Booking, earliest_start_s

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class SharedFile:
    """A JSON object that one process at a time reads and writes.

    Args:
        path: file; its folder exists. A file beside it is the lock.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextmanager
    def opened(self) -> Iterator[dict[str, Any]]:
        """Give the object for the block, and write it back unless the block raises.

        Raises:
            InfrastructureError: the file cannot be locked, read or written.
        """
        try:
            with self.path.with_name(f"{self.path.name}.lock").open("a") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                known = json.loads(self.path.read_bytes()) if self.path.exists() else {}
                yield known
                write_whole(self.path, json.dumps(known).encode())
        except (OSError, ValueError) as error:
            raise InfrastructureError(f"{self.path} cannot be shared between runs: {error}") from error


class SharedMinuteLimit:
    """A ``MinuteLimit`` for all processes of a host that ask the same model.

    Times are those of the host's monotonic clock, which all of its processes share until it starts anew.
    """

    def __init__(self, folder: Path, name: str, requests: int | None, tokens: int | None) -> None:
        """Share the limits of ``name`` among all who give the same ``folder``."""
        folder.mkdir(parents=True, exist_ok=True)
        boot = _BOOT_ID.read_text("ascii").strip() if _BOOT_ID.exists() else "host"
        self._file = SharedFile(folder / f"{name}-{boot[:8]}.json")
        self._requests, self._tokens = requests, tokens

    def book(self, tokens: int, *, now_s: float, latest_s: float) -> Booking | None:
        """Book a start (see ``MinuteLimit.book``)."""
        with self._file.opened() as state:
            kept = [each for each in state.get("bookings", []) if each[1] + WINDOW_S > now_s]
            bookings = [Booking(start_s, held) for _, start_s, held in kept]
            start_s = earliest_start_s(bookings, tokens, now_s, self._requests, self._tokens)
            state["bookings"] = kept
            if start_s > latest_s:
                return None
            state["next"] = number = int(state.get("next", 0)) + 1
            kept.append([number, start_s, tokens])
        return Booking(start_s, tokens, number)

    def settle(self, booking: Booking, tokens: int) -> None:
        """Put what a request took in the place of what it could have taken."""
        with self._file.opened() as state:
            for each in state.get("bookings", []):
                if each[0] == booking.number:
                    each[2] = tokens
        booking.tokens = tokens


class SharedBudget:
    """What all runs of a sweep may spend on models together.

    A call is begun only where what it may take at most is covered, so that the limits are never exceeded but
    by calls whose process died before it could tell what they cost, and by endpoints that report more than
    they were allowed.
    """

    def __init__(self, path: Path, *, tokens: int | None = None, usd: float | None = None) -> None:
        """Share the account in ``path``; ``None`` leaves a resource unlimited.

        Raises:
            MisuseError: a limit is negative, or the folder is not there, as on a host that does not share it.
        """
        if min(tokens or 0, usd or 0.0) < 0:
            raise MisuseError(f"a budget of a sweep is 0 or more, got {tokens} tokens, {usd} US dollars")
        if not path.parent.is_dir():
            raise MisuseError(
                f"{path.parent} is not on {socket.gethostname()}: what a sweep may spend in all needs a "
                "folder that all of its hosts share"
            )
        self._file, self._tokens, self._usd = SharedFile(path), tokens, usd

    @property
    def spent(self) -> Cost:
        """What all runs have spent so far."""
        with self._file.opened() as state:
            return Cost(tokens=int(state.get("tokens", 0)), usd=float(state.get("usd", 0.0)))

    def reserve(self, most: Cost) -> str | None:
        """Set aside what a call may cost at most; return a ticket, or ``None`` while others hold too much.

        Raises:
            ModelRefusedError: what is left does not cover it, whatever others give back.
        """
        with self._file.opened() as state:
            held = state["held"] = [each for each in state.get("held", []) if _is_alive(each)]
            spent = Cost(tokens=int(state.get("tokens", 0)), usd=float(state.get("usd", 0.0)))
            others = Cost(tokens=sum(each["tokens"] for each in held), usd=sum(each["usd"] for each in held))
            covered = self._covers(spent + most)
            if covered and self._covers(spent + others + most):
                state["next"] = number = int(state.get("next", 0)) + 1
                ticket = f"{socket.gethostname()}:{os.getpid()}:{number}"
                held.append({"ticket": ticket, "tokens": most.tokens, "usd": most.usd})
                return ticket
        if covered:
            return None
        limits = [] if self._tokens is None else [f"{self._tokens} tokens"]
        limits += [] if self._usd is None else [f"{self._usd:g} US dollars"]
        raise ModelRefusedError(
            "sweep_budget",
            f"the sweep may spend {' and '.join(limits)} on models in all; it has spent {spent.tokens} "
            f"tokens, {spent.usd:.4g} US dollars, and the rest does not cover a question with its longest "
            f"answer ({most.tokens} tokens): resume it with a larger limit, or lower --max-tokens",
        )

    def _covers(self, cost: Cost) -> bool:
        within_tokens = self._tokens is None or cost.tokens <= self._tokens
        return within_tokens and (self._usd is None or cost.usd <= self._usd)

    def settle(self, ticket: str, actual: Cost) -> None:
        """Charge what a call cost, in place of what was set aside for it."""
        with self._file.opened() as state:
            state["held"] = [each for each in state.get("held", []) if each["ticket"] != ticket]
            state["tokens"] = int(state.get("tokens", 0)) + actual.tokens
            state["usd"] = float(state.get("usd", 0.0)) + actual.usd


def _is_alive(held: dict[str, Any]) -> bool:
    """Say whether the process that reserved this may still tell what it cost; on other hosts it may."""
    host, pid, _ = held["ticket"].rsplit(":", 2)
    return host != socket.gethostname() or Path(f"/proc/{pid}").exists()
