"""The program under test, and the door through which it is called. Inside the cell.

Nothing here is trusted: the program shares this process and may change all of it. It
can only spoil its own answers.
"""

import _sitebuiltins
import atexit
import builtins
import os
import signal
import socket
import sys
import threading
import types
from typing import Any

from rlvr_jax.verifiers.code import values, wire

MODULE = "solution"
_OURS = "rlvr_jax"


def run_program(sources: list[str]) -> None:
    """Runs a program as `python program.py` would, and ends the process."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    _hide_ourselves()
    _open_streams()
    sys.argv[:] = ["program.py"]
    code = 0
    try:
        _execute(sources, "__main__")
        for thread in threading.enumerate():
            if thread is not threading.current_thread() and not thread.daemon:
                thread.join()
    except SystemExit as exit:
        code = exit.code if isinstance(exit.code, int) else int(exit.code is not None)
    except BaseException:
        code = 1
    try:
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.__stdout__):
            if not getattr(stream, "closed", False):
                stream.flush()  # type: ignore[union-attr]  # None fails, as it should
    except BaseException:
        code = 1
    os._exit(code & 0xFF)


def _open_streams() -> None:
    """Streams of our own: those that Python opened took other files for theirs."""
    how = {"encoding": "utf8", "errors": "surrogateescape", "newline": "\n"}
    sys.stdin = sys.__stdin__ = open(0, closefd=False, **how)
    sys.stdout = sys.__stdout__ = open(1, "w", closefd=False, **how)


def serve_calls(connection: socket.socket, sources: list[str]) -> None:
    """Defines what the sources define, then does what the other side asks, for ever."""
    _hide_ourselves()
    desk = _Desk(sources)
    while True:
        request = wire.receive(connection)
        try:
            answer = desk.answer(request)
        except BaseException as error:
            answer = {"error": _describe(error)}
        wire.send(connection, answer | {"nonce": request["nonce"]})


class _Desk:
    """Names, objects and what may be done with them."""

    def __init__(self, sources: list[str]):
        self._sources = sources
        self._module = types.ModuleType(MODULE)
        self._objects: list[Any] = []

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """One request: load, call, get or set."""
        if request["do"] == "load":
            self._module = _execute(self._sources, MODULE, request["without"])
            return {"value": None}
        target = self._target(request["of"], request["path"])
        if request["do"] == "get":
            return {"value": self._out(target)}
        if request["do"] == "set":
            setattr(target, request["name"], self._in(request["value"]))
            return {"value": None}
        arguments = self._in(request["args"])
        keywords = self._in(request["kwargs"])
        result = target(*arguments, **keywords)
        answer = {"value": self._out(result)}
        after = self._out(arguments)
        if after != request["args"]:
            answer["args"] = after
        return answer

    def _target(self, of: Any, path: list[str]) -> Any:
        target = self._module if of is None else self._objects[of]
        for name in path:
            if target is self._module and name not in vars(target):
                raise NameError(f"name {name!r} is not defined")
            target = getattr(target, name)
        return target

    def _in(self, data: Any) -> Any:
        return values.decode(data, lambda number, _: self._objects[number])

    def _out(self, value: Any) -> Any:
        return values.encode(value, self._refer)

    def _refer(self, value: Any) -> values.Reference:
        known = [number for number, each in enumerate(self._objects) if each is value]
        if not known:
            known = [len(self._objects)]
            self._objects.append(value)
        return values.Reference(known[0], type(value).__name__)


def _execute(
    sources: list[str], name: str, without: str | None = None
) -> types.ModuleType:
    """A module of that name, after running the sources in it one by one.

    `without` is forgotten before the last source: a stub that it has to define anew.
    """
    module = types.ModuleType(name)
    sys.modules[name] = module
    for number, source in enumerate(sources):
        if without is not None and number == len(sources) - 1:
            vars(module).pop(without, None)
        code = compile(source, "<program>", "exec", dont_inherit=True)
        exec(code, vars(module))
    return module


def _hide_ourselves() -> None:
    """Leaves what a program finds in any Python, which has `exit` from `site`."""
    for name in ("exit", "quit"):
        setattr(builtins, name, _sitebuiltins.Quitter(name, "end of file"))
    for name in [each for each in sys.modules if each.split(".")[0] == _OURS]:
        del sys.modules[name]


def _describe(error: BaseException) -> list[Any]:
    kinds = [kind.__name__ for kind in type(error).__mro__]
    try:
        text = str(error)[:300]
    except BaseException:
        text = "(its message cannot be read)"
    return [kinds, text]
