"""Frames of JSON on a socket, used on both sides of the wall."""

import json
import os
import socket
import struct
import time
from typing import Any

MAX_FRAME_BYTES = 8 * 2**20
_LENGTH = struct.Struct("!I")
_dumps, _loads = json.dumps, json.loads  # a program may replace those of the module


class Closed(Exception):
    """The other side is gone, or sent what is no message."""


def nonce() -> str:
    """A number used once: what carries another is no answer to this request."""
    return os.urandom(16).hex()


def send(
    connection: socket.socket, message: Any, deadline: float | None = None
) -> None:
    """Sends one message of JSON values.

    Args:
      connection: a connected stream socket.
      message: JSON values only.
      deadline: `time.monotonic()` value to give up at; None waits.

    Raises:
      TimeoutError: the other side did not read it in time.
      Closed: the other side is gone, or the message is too long.
    """
    data = _dumps(message).encode()
    if len(data) > MAX_FRAME_BYTES:
        raise Closed(f"a message of {len(data)} bytes")
    try:
        connection.settimeout(left(deadline))
        connection.sendall(_LENGTH.pack(len(data)) + data)
    except TimeoutError:
        raise
    except OSError as error:
        raise Closed(str(error)) from error


def receive(connection: socket.socket, deadline: float | None = None) -> Any:
    """Waits for one message; the arguments and errors are those of `send`."""
    (length,) = _LENGTH.unpack(_exactly(connection, _LENGTH.size, deadline))
    if length > MAX_FRAME_BYTES:
        raise Closed(f"a message of {length} bytes")
    try:
        return _loads(_exactly(connection, length, deadline))
    except (ValueError, RecursionError) as error:
        raise Closed("bytes that are no message") from error


def _exactly(connection: socket.socket, size: int, deadline: float | None) -> bytes:
    data = bytearray()
    while len(data) < size:
        try:
            connection.settimeout(left(deadline))
            part = connection.recv(size - len(data))
        except TimeoutError:
            raise
        except OSError as error:
            raise Closed(str(error)) from error
        if not part:
            raise Closed("end of stream")
        data += part
    return bytes(data)


def left(deadline: float | None) -> float | None:
    """Seconds until the deadline; None where there is none.

    Raises:
      TimeoutError: it has passed.
    """
    if deadline is None:
        return None
    seconds = deadline - time.monotonic()
    if seconds <= 0:
        raise TimeoutError("out of time")
    return seconds
