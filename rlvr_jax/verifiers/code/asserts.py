"""Runs the assert statements of HumanEval and MBPP on the trusted side.

The tests get a `Remote` in the function's place. Every assert statement is one test: it
has passed if it was reached and held each time. Asserts that share no variable with
their neighbours run in an order of their own for each program.
"""

import ast
import builtins
import importlib
import itertools
import random
import sys
from typing import Any

from rlvr_jax.verifiers.code import python
from rlvr_jax.verifiers.code.reference import BadReference, Task
from rlvr_jax.verifiers.code.remote import Program
from rlvr_jax.verifiers.code.results import Results

_HELD, _FAILED = "__held__", "__failed__"


class _Stop(BaseException):
    """One failure is enough."""


class Suite:
    """The tests of one reference, compiled; runs once."""

    def __init__(self, task: Task, order: random.Random):
        """Reads the tests and mixes those that may be mixed.

        Raises:
          BadReference: they are no Python, hold no assert or name no function.
        """
        fields = task.fields
        try:
            if task.form == "humaneval":
                setup, tests = [fields["prompt"]], [fields["test"]]
            else:
                setup = [*fields.get("test_imports", [])]
                setup.append(fields.get("test_setup_code", ""))
                tests = [*fields["test_list"]]
                order.shuffle(tests)
            self._setup = [python.parse(source) for source in setup]
            self._tests = [python.parse(source) for source in tests]
        except (SyntaxError, ValueError, TypeError) as error:
            raise BadReference(f"the tests are no Python: {error}") from error
        names = free_names([*self._setup, *self._tests])
        marker = _Marker(order)
        self._tests = [ast.fix_missing_locations(marker.visit(t)) for t in self._tests]
        self._asserts = marker.count
        self._checked = fields["entry_point"] if task.form == "humaneval" else None
        if not self._asserts:
            raise BadReference("the tests hold no assert statement")
        self._modules = names.modules
        self._remotes = names.functions | {task.entry_point or ""} - {""}
        if not self._remotes:
            if len(names.called) != 1:
                raise BadReference("which function the tests call cannot be told")
            self._remotes = names.called  # the task is to write a `sum` of one's own

    def run(self, program: Program, fraction: bool) -> Results:
        """Runs the tests; all of them if `fraction`, else up to the first failure."""
        held: set[int] = set()
        failed: dict[int, str] = {}

        def fail(number: int, error: Exception) -> None:
            failed.setdefault(number, _described(error))
            if not fraction:
                raise _Stop

        namespace: dict[str, Any] = {"__name__": "tests"}
        namespace |= {name: importlib.import_module(name) for name in self._modules}
        namespace |= {name: program.function(name) for name in self._remotes}
        problem = ""
        try:
            _execute(self._setup, namespace)
            namespace |= {name: program.function(name) for name in self._remotes}
            namespace |= {_HELD: held.add, _FAILED: fail}
            for test in self._tests:
                try:
                    _execute([test], namespace)
                    if self._checked is not None:
                        namespace["check"](namespace[self._checked])
                except Exception as error:
                    problem = problem or _described(error)
                    if not fraction:
                        break
        except _Stop:
            pass
        passed = len(held - failed.keys())
        if not (program.calls or failed or problem or program.gone):
            raise BadReference("the tests do not call the program")
        unreached = "" if held else "no assert statement was reached"
        reasons = [program.gone, problem, *failed.values(), unreached]
        reason = next((each for each in reasons if each), "")
        if not fraction and not reason:
            passed = self._asserts  # those in branches that were not taken
        return Results(passed, self._asserts, reason)


def _described(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:200].removesuffix(": ")


class Names:
    """What tests take from elsewhere."""

    def __init__(self) -> None:
        """Nothing yet."""
        self.modules: set[str] = set()
        self.functions: set[str] = set()
        self.called: set[str] = set()
        """Names of built-in functions that are called."""


def free_names(trees: list[ast.Module]) -> Names:
    """What the tests name and do not define: modules, and the program's functions."""
    bound: set[str] = set()
    read: set[str] = set()
    called: set[str] = set()
    for node in itertools.chain.from_iterable(map(ast.walk, trees)):
        if isinstance(node, ast.Name):
            (read if isinstance(node.ctx, ast.Load) else bound).add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            bound.add(node.name)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, ast.alias):
            bound.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, ast.ExceptHandler) and node.name:
            bound.add(node.name)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            called.add(node.func.id)
    names = Names()
    for name in read - bound:
        if hasattr(builtins, name):
            if name in called:
                names.called.add(name)
        elif name in sys.stdlib_module_names and name not in called:
            names.modules.add(name)
        else:
            names.functions.add(name)
    return names


class _Marker(ast.NodeTransformer):
    """Numbers the asserts, has each report how it went, and mixes their order.

    An assert within `try` or `with` keeps its meaning: there, failing may be right.
    """

    def __init__(self, order: random.Random):
        self.count = 0
        self._order = order
        self._variables: set[str] = set()

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        number = ast.Constant(self.count)
        self.count += 1
        held = _call(_HELD, number)
        handler = ast.ExceptHandler(
            ast.Name("Exception", ast.Load()),
            "error",
            [_call(_FAILED, number, ast.Name("error", ast.Load()))],
        )
        return ast.Try([node, held], [handler], [], [])

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self._variables = {
            each.id
            for each in ast.walk(node)
            if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
        }
        node.body = self._mixed(node.body)
        return self.generic_visit(node)

    def visit_Try(self, node: ast.Try) -> ast.AST:
        return node

    visit_With = visit_Try  # type: ignore[assignment]  # another kind of node

    def _mixed(self, body: list[ast.stmt]) -> list[ast.stmt]:
        mixed: list[ast.stmt] = []
        for movable, group in itertools.groupby(body, self._may_move):
            statements = list(group)
            if movable:
                self._order.shuffle(statements)
            mixed += statements
        return mixed

    def _may_move(self, statement: ast.stmt) -> bool:
        return isinstance(statement, ast.Assert) and not any(
            isinstance(node, ast.NamedExpr)
            or (isinstance(node, ast.Name) and node.id in self._variables)
            for node in ast.walk(statement)
        )


def _call(name: str, *arguments: ast.expr) -> ast.Expr:
    return ast.Expr(ast.Call(ast.Name(name, ast.Load()), list(arguments), []))


def _execute(trees: list[ast.Module], namespace: dict[str, Any]) -> None:
    for tree in trees:
        python.run(tree, "<tests>", namespace)
