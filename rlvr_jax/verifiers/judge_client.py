"""One question to a chat model behind an OpenAI-compatible HTTP endpoint.

Retries what may pass (busy, overloaded, cut connections), gives up at one deadline for
all attempts together, and counts what was spent.
"""

import collections
import contextlib
import dataclasses
import http.client
import json
import os
import random
import threading
import time
import urllib.parse
from typing import Any

from rlvr_jax.errors import UserError

_MAX_REPLY_BYTES = 2**20
_RETRIED = frozenset([408, 409, 425, 429, *range(500, 600)])
_FIRST_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 20.0


class JudgeFailure(RuntimeError):
    """The endpoint gave no answer that can be used, and trying again will not help."""


class _TryAgain(Exception):
    """It failed this time; `pause_s` is what the server asked for, if anything."""

    def __init__(self, problem: str, pause_s: float | None = None):
        super().__init__(problem)
        self.pause_s = pause_s


@dataclasses.dataclass(frozen=True)
class ChatClient:
    """Where the model is, and how patient to be with it."""

    url: str
    """Up to and without "/chat/completions", as "http://localhost:8000/v1"."""
    model: str
    api_key_env: str = ""
    """The environment variable that holds the key; "" sends none."""
    max_tokens: int = 1024
    timeout_s: float = 60.0
    """For one answer, retries and pauses included."""
    retries: int = 3
    spent: collections.Counter = dataclasses.field(
        default_factory=collections.Counter, compare=False
    )
    """calls, retries, prompt_tokens, completion_tokens; change it under `lock`."""
    lock: threading.Lock = dataclasses.field(
        default_factory=threading.Lock, compare=False, repr=False
    )

    def __post_init__(self):
        """Refuses an address that cannot be called."""
        parts = urllib.parse.urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UserError(
                f"judge.url={self.url!r} must be like 'http://localhost:8000/v1'"
            )

    def ask(self, messages: list[dict[str, str]], accepts: Any = None) -> Any:
        """The model's reply to the messages.

        Args:
          messages: [{"role": ..., "content": ...}, ...].
          accepts: turns the reply's text into what is returned; a ValueError from it
            is a malformed reply, which is asked for again.

        Raises:
          TimeoutError: no usable reply before the deadline.
          JudgeFailure: refused, or malformed or failing to the last attempt.
        """
        deadline = time.monotonic() + self.timeout_s
        body = json.dumps(
            {
                "model": self.model,
                "messages": messages,
                "temperature": 0,
                "max_tokens": self.max_tokens,
            }
        ).encode()
        problem = ""
        for attempt in range(self.retries + 1):
            self._count(calls=1, retries=int(attempt > 0))
            try:
                text = self._text(self._post(body, deadline))
                return accepts(text) if accepts else text
            except _TryAgain as error:
                problem, pause_s = str(error), error.pause_s
            except ValueError as error:
                problem, pause_s = f"malformed reply: {error}", 0.0
            if attempt < self.retries:
                _wait(attempt, pause_s, deadline)
        raise JudgeFailure(f"{problem} ({self.retries + 1} attempts)")

    def _post(self, body: bytes, deadline: float) -> bytes:
        parts = urllib.parse.urlsplit(self.url)
        kind = (
            http.client.HTTPSConnection
            if parts.scheme == "https"
            else http.client.HTTPConnection
        )
        left = _left(deadline)
        connection = kind(str(parts.hostname), parts.port, timeout=left)
        # A server that sends a byte now and then never runs into the socket's own
        # timeout: the connection is cut from outside.
        cutter = threading.Timer(left, _cut, [connection])
        cutter.daemon = True
        cutter.start()
        try:
            path = parts.path.rstrip("/") + "/chat/completions"
            connection.request("POST", path, body, self._headers())
            reply = connection.getresponse()
            data = reply.read(_MAX_REPLY_BYTES + 1)
            status, pause = reply.status, reply.getheader("Retry-After")
        except (OSError, http.client.HTTPException) as error:
            _left(deadline)
            raise _TryAgain(f"{type(error).__name__}: {error}"[:300]) from error
        finally:
            cutter.cancel()
            connection.close()
        if time.monotonic() >= deadline:
            raise TimeoutError
        if status in _RETRIED:
            raise _TryAgain(_refusal(status, data), _seconds(pause))
        if status != 200:
            raise JudgeFailure(_refusal(status, data))
        if len(data) > _MAX_REPLY_BYTES:
            raise _TryAgain(f"a reply of more than {_MAX_REPLY_BYTES} bytes")
        return data

    def _headers(self) -> dict[str, str]:
        headers = {"Content-Type": "application/json"}
        if self.api_key_env:
            headers["Authorization"] = f"Bearer {os.environ.get(self.api_key_env, '')}"
        return headers

    def _text(self, data: bytes) -> str:
        try:
            reply = json.loads(data)
            choice = reply["choices"][0]
            text = choice["message"]["content"]
        except (ValueError, LookupError, TypeError, RecursionError) as error:
            shown = data[:100].decode(errors="replace")
            raise ValueError(f"{type(error).__name__} in {shown!r}") from error
        usage = reply.get("usage")
        usage = usage if isinstance(usage, dict) else {}
        self._count(
            prompt_tokens=_natural(usage.get("prompt_tokens")),
            completion_tokens=_natural(usage.get("completion_tokens")),
        )
        if not isinstance(text, str) or not text.strip():
            cut = choice.get("finish_reason") == "length"
            hint = "; raise judge.max_tokens" if cut else ""
            raise ValueError(f"no text{hint}")
        return text

    def _count(self, **numbers: int) -> None:
        with self.lock:
            self.spent.update(numbers)


def _wait(attempt: int, asked_s: float | None, deadline: float) -> None:
    """Longer after each attempt, as the server asks, and apart from other callers."""
    pause = asked_s
    if pause is None:
        pause = _FIRST_PAUSE_S * 2**attempt * random.uniform(0.5, 1.0)
    time.sleep(min(pause, _LONGEST_PAUSE_S, _left(deadline)))


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _cut(connection: http.client.HTTPConnection) -> None:
    sock = connection.sock
    if sock is not None:
        with contextlib.suppress(OSError):
            sock.shutdown(2)


def _refusal(status: int, data: bytes) -> str:
    said = " ".join(data[:200].decode(errors="replace").split())
    return f"HTTP {status}: {said}"


def _seconds(text: str | None) -> float | None:
    try:
        return max(0.0, float(text)) if text else None
    except ValueError:
        return None


def _natural(value: Any) -> int:
    return value if isinstance(value, int) and 0 <= value < 10**9 else 0
