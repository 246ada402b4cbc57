"""The client of the ``openai`` package, bounded in bytes and in time.

Its HTTP client is used as the package brings it: httpx, or httpx2 from openai 3 on.
"""

from __future__ import annotations

import importlib
import ipaddress
import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlsplit

import openai

from ascend_gym.core.errors import MisuseError, ModelError

_T = TypeVar("_T")

_OPENAI_BASE_URL = "https://api.openai.com/v1"
_CONNECT_TIMEOUT_S = 30.0
_PIECE_BYTES = 2**16
_PACKED = b"content-encoding"
# The library that openai builds upon: it has errors that openai does not wrap.
_http = importlib.import_module(openai.DefaultHttpxClient.mro()[1].__module__.partition(".")[0])


@dataclass(frozen=True)
class HttpAnswer:
    """What a server answered, whatever its status; names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class NoAnswer:
    """Why there is no answer; the same request may do better later."""

    message: str


class OpenAiClient:
    """Makes single requests to one endpoint. Safe for use from several threads.

    Proxies of the environment are used, except for addresses of this machine: it is no proxy's business
    to reach those.
    """

    def __init__(self, base_url: str | None, api_key: str | None, max_bytes: int) -> None:
        """Prepare to ask; nothing is sent yet.

        Args:
            base_url: address of the endpoint; ``None`` means OpenAI's own.
            api_key: key; ``None`` sends none.
            max_bytes: length of an answer's body.

        Raises:
            MisuseError: ``base_url`` is no http(s) address, or holds a password; a setting that the
                package takes from the environment, such as a proxy, cannot be used.
        """
        self._host = "api.openai.com" if base_url is None else _host_of(base_url)
        self._headers: dict[str, Any] = {} if api_key else {"Authorization": openai.Omit()}
        try:
            self.sdk = openai.OpenAI(
                base_url=base_url or _OPENAI_BASE_URL,
                api_key=api_key or "none",  # the package takes the environment's for an empty one
                max_retries=0,  # the package knows neither deadline nor shared rates: Endpoint asks again
                http_client=_BoundedHttpClient(max_bytes, trust_env=not _is_this_machine(self._host)),
            )
        except (openai.OpenAIError, ImportError, ValueError, _http.InvalidURL) as error:
            raise MisuseError(
                f"no client for {base_url or _OPENAI_BASE_URL}: {error}; check the address, and OPENAI_* "
                "and *_PROXY in the environment"
            ) from None

    def ask(
        self, create: Callable[..., Any], body: Mapping[str, Any], timeout_s: float
    ) -> HttpAnswer | NoAnswer:
        """Make one request, name look-up and all within ``timeout_s``.

        A request that takes longer is left alone, in a thread that ends with the process at the latest.

        Args:
            create: a method of ``sdk`` in its ``with_raw_response`` form.
            body: arguments of that method.
            timeout_s: seconds until the answer has to be there as a whole.

        Raises:
            ModelError: something went wrong that is no fault of the endpoint or the network.
        """
        timeout = openai.Timeout(timeout_s, connect=min(timeout_s, _CONNECT_TIMEOUT_S))
        answer = _within(timeout_s, lambda: self._answer(create, body, timeout))
        return answer or NoAnswer(f"{self._host}: Timeout: no whole answer within {timeout_s:.3g} s")

    def _answer(
        self, create: Callable[..., Any], body: Mapping[str, Any], timeout: openai.Timeout
    ) -> HttpAnswer | NoAnswer:
        try:
            response = create(**body, extra_headers=self._headers, timeout=timeout).http_response
        except openai.APIStatusError as error:
            response = error.response
        except (openai.OpenAIError, _http.HTTPError, OSError, ValueError) as error:
            reason = error.__cause__ or error  # the package says "Connection error."
            return NoAnswer(f"{self._host}: {type(reason).__name__}: {reason}")
        headers = {name.lower(): value for name, value in response.headers.items()}
        return HttpAnswer(response.status_code, headers, response.content)


class _BoundedHttpClient(openai.DefaultHttpxClient):
    """Reads whole answers, up to a number of bytes and within a request's read timeout in all.

    Each request has a connection of its own: one that was kept could have gone stale and cost an attempt.
    Answers are not unpacked, so that no small one becomes large.
    """

    def __init__(self, max_bytes: int, *, trust_env: bool) -> None:
        headers = {"Connection": "close", "Accept-Encoding": "identity"}
        super().__init__(headers=headers, follow_redirects=False, trust_env=trust_env)
        self._max_bytes = max_bytes

    def send(self, request: Any, **options: Any) -> Any:
        """Send ``request`` and return the answer, read and closed.

        Raises:
            OSError: the answer is too long or takes too long.
        """
        give_up_at = time.monotonic() + request.extensions["timeout"]["read"]
        response = super().send(request, **{**options, "stream": True, "follow_redirects": False})
        try:
            body = self._body(response, give_up_at)
        finally:
            response.close()
        headers = [(name, value) for name, value in response.headers.raw if name.lower() != _PACKED]
        return type(response)(response.status_code, headers=headers, content=body, request=request)

    def _body(self, response: Any, give_up_at: float) -> bytes:
        pieces: list[bytes] = []
        length = 0
        for piece in response.iter_raw(_PIECE_BYTES):
            pieces.append(piece)
            length += len(piece)
            if length > self._max_bytes:
                raise OSError(f"the answer is longer than the {self._max_bytes} bytes allowed")
            if time.monotonic() > give_up_at:
                raise TimeoutError("the answer kept coming in past the deadline")
        return b"".join(pieces)


def _within(timeout_s: float, work: Callable[[], _T]) -> _T | None:
    """Return what ``work`` returns, or ``None`` if it takes longer; it then goes on alone.

    Raises:
        ModelError: ``work`` raised, which Python has printed.
    """
    results: list[_T] = []
    thread = threading.Thread(target=lambda: results.append(work()), daemon=True)
    thread.start()
    thread.join(timeout_s)
    late = thread.is_alive()
    if not late and not results:
        raise ModelError("a request ended neither with an answer nor with a known error; see the trace above")
    return results[0] if results else None


def _host_of(base_url: str) -> str:
    """Return the host in ``base_url``.

    Raises:
        MisuseError: it is no http(s) address, or holds a user or a password.
    """
    expected = "expected an address such as http://127.0.0.1:8000/v1"
    if "@" in base_url:
        raise MisuseError(f"{expected} without user and password; a key belongs into OPENAI_API_KEY")
    try:
        parts = urlsplit(base_url)
        host = (parts.hostname or "").encode("idna").decode()
        usable = bool(host) and parts.port != 0 and parts.scheme in ("http", "https")
    except ValueError:  # no such port, brackets that do not match, no name of a host
        usable, host = False, ""
    if not usable or not base_url.isascii() or re.search(r"[\s?#]", base_url):
        raise MisuseError(f"{expected}, got {base_url!r}")
    return host


def _is_this_machine(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
