"""Messages between the pool and a worker: JSON with a length in front, on a socket.

No pickle, so that what a worker sends can be wrong but cannot run anything.
"""

import json
import socket
import struct
import time
from typing import Any

MAX_MESSAGE_BYTES = 64 * 2**20
_LENGTH = struct.Struct("!I")


class Closed(Exception):
    """The other side is gone, or sent what is no message."""


def send(
    connection: socket.socket, message: dict[str, Any], deadline: float | None = None
) -> None:
    """Sends one message.

    Args:
      connection: a connected stream socket.
      message: JSON values only.
      deadline: `time.monotonic()` value to give up at; None waits.

    Raises:
      TimeoutError: the other side did not read it in time.
      Closed: the other side is gone.
    """
    data = json.dumps(message).encode()
    connection.settimeout(_left(deadline))
    try:
        connection.sendall(_LENGTH.pack(len(data)) + data)
    except TimeoutError:
        raise
    except OSError as error:
        raise Closed(str(error)) from error


def receive(connection: socket.socket, deadline: float | None = None) -> dict[str, Any]:
    """Waits for one message; the arguments and errors are those of `send`."""
    (length,) = _LENGTH.unpack(_exactly(connection, _LENGTH.size, deadline))
    if length > MAX_MESSAGE_BYTES:
        raise Closed(f"a message of {length} bytes")
    try:
        message = json.loads(_exactly(connection, length, deadline))
    except (ValueError, RecursionError) as error:
        raise Closed("bytes that are no message") from error
    if not isinstance(message, dict):
        raise Closed("a message that is no object")
    return message


def _exactly(connection: socket.socket, size: int, deadline: float | None) -> bytes:
    data = bytearray()
    while len(data) < size:
        connection.settimeout(_left(deadline))
        try:
            part = connection.recv(size - len(data))
        except TimeoutError:
            raise
        except OSError as error:
            raise Closed(str(error)) from error
        if not part:
            raise Closed("end of stream")
        data += part
    return bytes(data)


def _left(deadline: float | None) -> float | None:
    if deadline is None:
        return None
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
