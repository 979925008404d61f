"""The docker SDK's client with three things it lacks: an end from outside, bounded answers, whole deadlines.

Imported only when a host's Docker is first asked (it brings requests and urllib3). Everything here blocks: it belongs
in threads (`docker_threads`), which end as soon as `abort` is called.
"""

# ruff: noqa: E402 (requests is told first what it is to do without)
from __future__ import annotations

import contextlib
import io
import json
import socket
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping
from email.utils import parsedate_to_datetime
from typing import Any, cast
from urllib.parse import quote

# What guesses encodings is not wanted, bodies are read as UTF-8 here: 1 MB. requests does without it, and says so.
sys.modules.setdefault("charset_normalizer", cast(Any, None))
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import requests
import urllib3
from docker import APIClient
from docker.errors import APIError, DockerException
from docker.transport.unixconn import UnixHTTPAdapter, UnixHTTPConnection, UnixHTTPConnectionPool

from console.reach.docker_threads import DockerSilent, DockerUnreadable, NoSuchContainer
from console.readings.docker_errors import DockerProblem, explain_answer
from console.sanitize import line

MAX_ANSWER = 32 * 1024 * 1024
"""Bytes of one answer; more is refused."""
PIECE = 65_536

TRANSPORT_ERRORS = (requests.exceptions.RequestException, urllib3.exceptions.HTTPError, OSError)


class _Sockets:
    """The open sockets of one client, so that whoever waits on them can be woken."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: list[socket.socket] = []
        self._aborted = False

    def add(self, sock: socket.socket) -> None:
        with self._lock:
            if self._aborted:
                sock.close()
                raise ConnectionAbortedError("closed")
            self._open = [known for known in self._open if known.fileno() >= 0]
            self._open.append(sock)

    def wait_forever(self) -> None:
        """Take the time limit off: what is open now is a stream, and silence on it is no fault."""
        with self._lock:
            for sock in self._open:
                if sock.fileno() >= 0:
                    sock.settimeout(None)

    def abort(self) -> None:
        with self._lock:
            self._aborted = True
            for sock in self._open:
                with contextlib.suppress(OSError):  # it was closed, or the other side has gone
                    sock.shutdown(socket.SHUT_RDWR)


class _Connection(UnixHTTPConnection):
    def __init__(self, sockets: _Sockets, base_url: str, path: str, timeout: Any) -> None:
        super().__init__(base_url, path, timeout)
        self._sockets = sockets

    def connect(self) -> None:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.settimeout(self.timeout)
        self._sockets.add(sock)
        try:
            sock.connect(self.unix_socket)
        except OSError:
            sock.close()
            raise
        self.sock = sock


class _Pool(UnixHTTPConnectionPool):
    sockets: _Sockets

    def _new_conn(self) -> _Connection:  # type: ignore[override]  # urllib3 types it for its own TLS connections
        return _Connection(self.sockets, self.base_url, self.socket_path, self.timeout)


class _Adapter(UnixHTTPAdapter):
    def __init__(self, sockets: _Sockets, path: str, timeout: int) -> None:
        super().__init__(f"http+unix://{path}", timeout, pool_connections=2)
        self._sockets = sockets

    def get_connection(self, url: bytes | str, proxies: Any = None) -> UnixHTTPConnectionPool:
        with self.pools.lock:
            pool = self.pools.get(url)
            if pool is None:
                pool = _Pool(cast(str, url), self.socket_path, self.timeout, maxsize=self.max_pool_size)
                pool.sockets = self._sockets
                self.pools[url] = pool
        return cast(UnixHTTPConnectionPool, pool)


class Sdk:
    """One SDK client on one socket file. Blocking. Raises DockerUnreadable, DockerSilent and NoSuchContainer only."""

    def __init__(self, path: str, version: str, limit: float) -> None:
        self._sockets = _Sockets()
        self._limit = limit
        seconds = max(1, round(limit))
        try:
            self._api = APIClient(base_url="unix:///unused", version=version, timeout=seconds)
        except Exception as error:  # it reads the user's client configuration, and takes its form for granted
            words = f"the docker SDK cannot be set up here: {type(error).__name__}: {line(str(error), 200)}"
            raise DockerUnreadable(DockerProblem(words, "correct ~/.docker/config.json of this machine")) from error
        self._api.mount("http+docker://", _Adapter(self._sockets, path, seconds))
        self._api.trust_env = False  # no proxy and no netrc password for a socket
        self._api.headers["Accept-Encoding"] = "identity"
        self._api.hooks["response"].append(_bounded)

    def abort(self) -> None:
        """Wake whoever waits for an answer; for any thread. The client is of no use afterwards."""
        self._sockets.abort()

    def close(self) -> None:
        """Close every connection; only when no thread uses the client any more."""
        self._sockets.abort()
        self._api.close()

    def version(self) -> Mapping[str, Any]:
        """The answer of `/version`."""
        with _translated():
            return _mapping(self._api.version(api_version=False))

    def list_all(self) -> list[Mapping[str, Any]]:
        """All rows of `/containers/json?all=1`."""
        with _translated():
            rows: Any = self._api.containers(all=True)
        if not isinstance(rows, list):
            raise DockerUnreadable(_FOREIGN)
        return [_mapping(row) for row in rows]

    def inspect(self, container_id: str) -> Mapping[str, Any]:
        """One container. Raises NoSuchContainer where it is gone."""
        with _translated():
            return _mapping(self._api.inspect_container(container_id))

    def events(self, params: Mapping[str, str]) -> Stream:
        """The stream of events, open."""
        return self._stream("/events", params)

    def logs(self, container_id: str, params: Mapping[str, str]) -> Stream:
        """The stream of a container's log, open."""
        return self._stream(f"/containers/{quote(container_id, safe='')}/logs", params)

    def _stream(self, path: str, params: Mapping[str, str]) -> Stream:
        """A kept-open answer. The SDK's own streams read byte by byte and without bounds, so pieces are read here."""
        url = f"{self._api.base_url}/v{self._api.api_version}{path}"
        with _translated():
            response = self._api.get(url, params=dict(params), stream=True, timeout=self._limit)
            if response.status_code >= 400:
                body = _body(response)
                raise _refusal(response.status_code, body.decode("utf-8", "replace"))
            self._sockets.wait_forever()
        return Stream(response)


class Stream:
    """A kept-open answer, in pieces as they come."""

    def __init__(self, response: requests.Response) -> None:
        self._response = response

    @property
    def server_time(self) -> float | None:
        """The `Date` that the server gave, Unix seconds to the second."""
        with contextlib.suppress(TypeError, ValueError):  # no such header, or no date
            return parsedate_to_datetime(self._response.headers["Date"]).timestamp()
        return None

    def pieces(self) -> Iterator[bytes]:
        """Bytes as they come, until the server ends the answer. Raises DockerSilent where the connection breaks."""
        raw = self._response.raw
        try:
            if getattr(raw, "chunked", False):
                yield from raw.stream(PIECE, decode_content=False)
                return
            while piece := raw.read1(PIECE, decode_content=False):
                yield piece
        except TRANSPORT_ERRORS as error:
            raise DockerSilent(str(error)) from error
        finally:
            self._response.close()


_FOREIGN = DockerProblem("cannot read Docker: what answers at its socket does not speak its API", "is it Docker?")


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    """The SDK's many errors as our three."""
    try:
        yield
    except APIError as error:
        response = error.response
        status = response.status_code if response is not None else 500
        raise _refusal(status, response.text if response is not None else "") from error
    except (json.JSONDecodeError, requests.exceptions.JSONDecodeError) as error:
        raise DockerUnreadable(_FOREIGN) from error
    except (*TRANSPORT_ERRORS, DockerException) as error:
        raise DockerSilent(str(error)) from error


def _refusal(status: int, body: str) -> Exception:
    problem = explain_answer(status, body)
    return NoSuchContainer(problem) if status == 404 else DockerUnreadable(problem)


def _mapping(value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise DockerUnreadable(_FOREIGN)
    return value


def _bounded(response: requests.Response, *_: Any, **kwargs: Any) -> requests.Response:
    """A response hook: the same response with its body read up to MAX_ANSWER."""
    if response.is_redirect:  # requests would follow it, also off the socket, from the operator's machine
        raise DockerUnreadable(_FOREIGN)
    if kwargs.get("stream"):
        return response
    whole = requests.Response()
    whole.status_code, whole.reason, whole.url = response.status_code, response.reason, response.url
    whole.headers, whole.request, whole.encoding = response.headers, response.request, "utf-8"
    whole.raw = io.BytesIO(_body(response))
    return whole


def _body(response: requests.Response) -> bytes:
    found = io.BytesIO()
    try:
        for piece in response.raw.stream(PIECE, decode_content=False):
            found.write(piece)
            if found.tell() > MAX_ANSWER:
                response.close()
                raise DockerUnreadable(DockerProblem(f"cannot read Docker: an answer of over {MAX_ANSWER >> 20} MiB"))
    finally:
        response.raw.release_conn()
    return found.getvalue()
