"""One HTTP exchange, bounded in bytes and in time; what goes wrong is a value.

The standard library's client serves here because every failure of it is an ``OSError`` or an
``HTTPException``, an answer can be read in bounded pieces, and redirects, which could carry a key to
another host, can be refused.
"""

from __future__ import annotations

import http.client
import ipaddress
import re
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import IO, Any, TypeVar
from urllib.parse import urlsplit

from ascend_gym.core.errors import MisuseError

_T = TypeVar("_T")

_PIECE_BYTES = 2**16
_CONNECT_TIMEOUT_S = 30.0


@dataclass(frozen=True)
class WebAnswer:
    """What a server answered, whatever its status."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class NoAnswer:
    """Why there is no answer.

    Attributes:
        message: what went wrong.
        again: whether the same request may do better later.
    """

    message: str
    again: bool


class WebClient:
    """Posts to the addresses below one base URL. Safe for use from several threads.

    Proxies of the environment are used, except for addresses of this machine: it is no proxy's business
    to reach those.
    """

    def __init__(self, base_url: str, headers: Mapping[str, str], max_bytes: int) -> None:
        """Prepare to post to ``base_url``; nothing is sent yet.

        Raises:
            MisuseError: ``base_url`` is no http(s) address, or holds a password.
        """
        self._base_url = base_url.rstrip("/")
        self._headers, self._max_bytes = dict(headers), max_bytes
        self._host = _host_of(base_url)
        proxies = urllib.request.ProxyHandler({} if _is_this_machine(self._host) else None)
        self._opener = urllib.request.build_opener(proxies, _NoRedirects, _HttpHandler, _HttpsHandler)

    def post(self, path: str, body: bytes, timeout_s: float) -> WebAnswer | NoAnswer:
        """Post ``body`` and read the answer, all within ``timeout_s``, name look-up included.

        An exchange that takes longer is left alone: its thread ends when the server next says a word.
        """
        request = urllib.request.Request(
            f"{self._base_url}/{path}", body, headers=self._headers, method="POST"
        )
        give_up_at = time.monotonic() + timeout_s
        answer = _within(timeout_s, lambda: self._exchange(request, give_up_at))
        return answer or NoAnswer(
            f"{self._host}: Timeout: no whole answer within {timeout_s:.3g} s", again=True
        )

    def _exchange(self, request: urllib.request.Request, give_up_at: float) -> WebAnswer | NoAnswer:
        timeout_s = max(0.001, give_up_at - time.monotonic())
        try:
            with self._open(request, timeout_s) as response:
                body = self._body(response, give_up_at)
                headers = {name.lower(): value for name, value in response.headers.items()}
        except (
            OSError,
            http.client.HTTPException,
            ValueError,
        ) as error:  # ValueError: broken header or chunk
            reason = error.reason if isinstance(error, urllib.error.URLError) else error
            return NoAnswer(f"{self._host}: {type(reason).__name__}: {reason}", again=True)
        if body is None:
            return NoAnswer(f"the answer is longer than the {self._max_bytes} bytes allowed", again=True)
        return WebAnswer(response.status, headers, body)

    def _open(self, request: urllib.request.Request, timeout_s: float) -> Any:
        try:
            return self._opener.open(request, timeout=timeout_s)
        except urllib.error.HTTPError as error:  # an answer like any other, of a status other than 2xx
            return error

    def _body(self, response: Any, give_up_at: float) -> bytes | None:
        """Read a body in pieces; ``None`` if it is too long."""
        pieces: list[bytes] = []
        length = 0
        while piece := response.read1(_PIECE_BYTES):
            pieces.append(piece)
            length += len(piece)
            if length > self._max_bytes:
                return None
            if time.monotonic() > give_up_at:
                raise TimeoutError("the answer kept coming in past the deadline")
        return b"".join(pieces)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str
    ) -> None:
        """Leave a redirect as the answer."""
        return


class _ConnectsSoon:
    """Mixed into a connection: connecting, TLS included, has less time than waiting for an answer."""

    timeout: Any
    sock: Any

    def connect(self) -> None:
        """Connect within ``_CONNECT_TIMEOUT_S``."""
        timeout_s, self.timeout = self.timeout, min(self.timeout, _CONNECT_TIMEOUT_S)
        super().connect()  # type: ignore[misc]
        self.sock.settimeout(timeout_s)


class _Http(_ConnectsSoon, http.client.HTTPConnection):
    pass


class _Https(_ConnectsSoon, http.client.HTTPSConnection):
    pass


class _HttpHandler(urllib.request.HTTPHandler):
    def http_open(self, req: urllib.request.Request) -> Any:
        """Open an http address."""
        return self.do_open(_Http, req)


class _HttpsHandler(urllib.request.HTTPSHandler):
    def https_open(self, req: urllib.request.Request) -> Any:
        """Open an https address."""
        return self.do_open(_Https, req)


def _within(timeout_s: float, work: Callable[[], _T]) -> _T | None:
    """Return what ``work`` returns, or ``None`` if it takes longer; it then goes on alone."""
    results: list[_T] = []
    thread = threading.Thread(target=lambda: results.append(work()), daemon=True)
    thread.start()
    thread.join(timeout_s)
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
