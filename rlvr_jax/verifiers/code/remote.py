"""What tests hold in place of the program's functions and objects: calls by value."""

import builtins
import collections
from typing import Any

from rlvr_jax.verifiers.code import values, wire
from rlvr_jax.verifiers.code.sandbox import Cell, Gone, describe

_NOT_PLAIN = (
    ValueError,
    LookupError,
    ArithmeticError,
    AttributeError,
    RecursionError,
)
_REPLACED_IN_PLACE = (list, dict, set, bytearray, collections.deque)


class ProgramError(Exception):
    """The program raised something that has no counterpart here."""


class Program:
    """A program that runs in a cell, seen from the tests."""

    def __init__(self, cell: Cell, sources: list[str], without: str | None = None):
        """Starts it and lets it define its functions.

        Args:
          cell: where it runs.
          sources: run one after another in one module.
          without: a name to forget before the last source.

        Raises:
          Gone: it ended or hung. Any `Exception`: it raised that.
        """
        self.calls = 0
        """Calls that tests have made."""
        self.gone = ""
        """Why it answers no more; a test cannot make this be forgotten."""
        self._cell = cell
        self._connection = cell.start_calls(sources)
        try:
            self.ask({"do": "load", "without": without})
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Lets go of the line to the program; the cell ends it."""
        self._connection.close()

    def function(self, name: str) -> Any:
        """The program's function of that name, to be called as if it were here.

        `Class().method` stands for the method of a new object.
        """
        first, *rest = name.split("().")
        found = Remote(self, None, (first,), "function")
        for attribute in rest:
            found = getattr(found(), attribute)
        return found

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Sends one request and waits for the answer that carries its nonce."""
        if self.gone:
            raise Gone(self.gone)
        request["nonce"] = wire.nonce()
        answer: dict[str, Any] = {}
        try:
            deadline = self._cell.call_deadline()
            wire.send(self._connection, request, deadline)
            answer = wire.receive(self._connection, deadline)
            if not isinstance(answer, dict) or answer.get("nonce") != request["nonce"]:
                raise wire.Closed("what it wrote is no answer")
        except TimeoutError:
            self.gone = "it ran out of time"
        except Gone as error:
            self.gone = str(error)
        except wire.Closed as error:
            self.gone = f"{error}; it {describe(self._cell.end())}"
        if self.gone:
            raise Gone(self.gone)
        if "error" in answer:
            raise _exception(answer["error"])
        return answer

    def value(self, data: Any) -> Any:
        """A value from the program; what is no plain data becomes a `Remote`."""
        try:
            return values.decode(data, lambda of, kind: Remote(self, of, (), kind))
        except _NOT_PLAIN as error:
            raise values.Unsendable(f"no plain data: {error}") from None


class Remote:
    """A function or an object of the program. It can be called, read and changed.

    It has no value here: to compare it, to ask for its truth or its items raises
    TypeError, since the program's own methods would have to decide.
    """

    __slots__ = ("_remote",)
    __hash__ = None  # type: ignore[assignment]  # a value that cannot be compared

    def __init__(self, program: Program, of: int | None, path: tuple, type_name: str):
        """Object `of` of the program, or (None) its module, and a path of names."""
        object.__setattr__(self, "_remote", (program, of, list(path), type_name))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls it with copies; lists, sets and dictionaries are updated after."""
        program, of, path, _ = object.__getattribute__(self, "_remote")
        program.calls += 1
        answer = program.ask(
            {
                "do": "call",
                "of": of,
                "path": path,
                "args": values.encode(args, _refer),
                "kwargs": values.encode(kwargs, _refer),
            }
        )
        value = program.value(answer.get("value"))
        if "args" in answer:
            _update(args, program.value(answer["args"]))
        return value

    def __getattr__(self, name: str) -> Any:
        """Reads an attribute by value."""
        if name.startswith("__"):
            raise AttributeError(name)
        program, of, path, _ = object.__getattribute__(self, "_remote")
        answer = program.ask({"do": "get", "of": of, "path": [*path, name]})
        return program.value(answer.get("value"))

    def __setattr__(self, name: str, value: Any) -> None:
        """Sets an attribute, by value or to another object of the program."""
        program, of, path, _ = object.__getattribute__(self, "_remote")
        data = values.encode(value, _refer)
        program.ask({"do": "set", "of": of, "path": path, "name": name, "value": data})

    def _refuse(self, *_: Any) -> Any:
        kind = object.__getattribute__(self, "_remote")[3]
        raise TypeError(f"a value of type {kind:.50}, which is no plain data")

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __bool__ = __len__ = __iter__ = __contains__ = __getitem__ = __index__ = _refuse
    __str__ = __format__ = _refuse

    def __repr__(self) -> str:
        """For messages; tells the type and nothing of the value."""
        kind = object.__getattribute__(self, "_remote")[3]
        return f"<a value of type {kind:.50}>"


def _refer(value: Any) -> values.Reference:
    if type(value) is not Remote:
        kind = type(value).__name__
        raise values.Unsendable(f"a test passes a value of type {kind}")
    _, of, path, type_name = object.__getattribute__(value, "_remote")
    if path:
        raise values.Unsendable("a test passes one of the program's functions")
    return values.Reference(of, type_name)


def _update(args: tuple, after: Any) -> None:
    """Does to the lists, sets and dictionaries here what the program did to its own."""
    if type(after) is not tuple or len(after) != len(args):
        raise values.Unsendable("no plain arguments came back")
    for mine, theirs in zip(args, after, strict=True):
        if type(mine) in _REPLACED_IN_PLACE and type(mine) is type(theirs):
            if isinstance(mine, list | bytearray):
                mine[:] = theirs
            elif isinstance(mine, collections.deque):
                mine.clear()
                mine.extend(theirs)
            else:
                mine.clear()
                mine.update(theirs)


def _exception(described: Any) -> Exception:
    """The built-in exception that the program raised, or the nearest to it."""
    try:
        kinds, text = described
        for name in kinds[:20]:
            kind = getattr(builtins, str(name), None)
            if isinstance(kind, type) and issubclass(kind, Exception):
                return kind(str(text)[:300])
    except (TypeError, ValueError):
        pass
    return ProgramError(f"{described!r:.300}")
