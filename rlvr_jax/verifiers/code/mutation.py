"""How strong are tests? Change the solution in small ways and see whether they notice.

    mutation score = mutants that the tests reject / mutants

A mutant that passes shows a hole that a policy can find too (or, seldom, a change that
makes no difference).
"""

import ast
import copy
import dataclasses
from collections.abc import Iterator
from typing import Any

from rlvr_jax.verifiers.base import Sample, Status
from rlvr_jax.verifiers.code import judge, python, reference

_SWAPS: dict[type, type] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
_CHANGED = """
def _changed(value):
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float, complex)):
        return value + 1 + abs(value)
    for kind, more in ((str, "x"), (list, [None]), (tuple, (None,))):
        if isinstance(value, kind):
            return value + more
    return 0 if value is None else None
"""


@dataclasses.dataclass(frozen=True)
class Mutant:
    """A changed solution."""

    change: str
    """What was changed, and in which line."""
    source: str


@dataclasses.dataclass(frozen=True)
class Score:
    """What tests made of the mutants."""

    killed: int
    total: int
    survivors: list[Mutant]

    @property
    def share(self) -> float:
        """killed / total; 1 if there was nothing to kill."""
        return self.killed / self.total if self.total else 1.0


def score(fields: dict[str, Any], limit: int = 100) -> Score:
    """Judges mutants of the reference's solution by the reference's tests.

    Args:
      fields: a reference with a `solution` (see `judge`).
      limit: how many mutants, from the first line on.

    Raises:
      reference.BadReference: there is no solution, or it fails the tests itself.
    """
    if not isinstance(fields.get("solution"), str):
        raise reference.BadReference("a mutation score needs a 'solution'")
    solution = complete(fields)
    if not _passes(fields, solution):
        raise reference.BadReference("the solution fails the tests itself")
    tried = list(mutants(solution))[:limit]
    survivors = [mutant for mutant in tried if _passes(fields, mutant.source)]
    return Score(len(tried) - len(survivors), len(tried), survivors)


def complete(fields: dict[str, Any]) -> str:
    """The solution as a whole program: with the prompt, if it goes on from one."""
    solution, prompt = fields["solution"], fields.get("prompt", "")
    try:
        python.parse(solution)
    except SyntaxError:
        return prompt + solution
    return solution


def mutants(source: str) -> Iterator[Mutant]:
    """Every change of one operator, comparison, constant or returned value.

    Example:
      >>> [mutant.change for mutant in mutants("def f(x): return x < 3")]
      ['line 1: another value returned', 'line 1: Lt to LtE', 'line 1: 3 to 4']
    """
    tree = python.parse(source)
    for number, node in enumerate(ast.walk(tree)):
        for change, replace in _changes(node):
            mutant = copy.deepcopy(tree)
            twin = next(n for i, n in enumerate(ast.walk(mutant)) if i == number)
            replace(twin)
            line = getattr(node, "lineno", 0)
            yield Mutant(f"line {line}: {change}", _source(mutant))


def another_last_value(source: str, function: str) -> str | None:
    """The program with the function's last `return` giving another value.

    Another is: not b, n + 1 + |n|, a text or list that is longer by one, 0 for None.

    Returns:
      None if the function returns nothing.
    """
    tree = python.parse(source)
    found = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name == function
    ]
    returns = [each for node in found[-1:] for each in _returns(node)]
    if not returns:
        return None
    _return_another(max(returns, key=lambda node: node.lineno))
    return _source(tree)


def _returns(function: ast.FunctionDef) -> Iterator[ast.Return]:
    waiting: list[ast.AST] = [*function.body]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Return):
            yield node
        elif not isinstance(node, ast.FunctionDef | ast.Lambda | ast.ClassDef):
            waiting += ast.iter_child_nodes(node)


def _changes(node: ast.AST) -> Iterator[tuple[str, Any]]:
    match node:
        case ast.BinOp(op=op) | ast.BoolOp(op=op) | ast.AugAssign(op=op):
            if other := _SWAPS.get(type(op)):
                name = f"{type(op).__name__} to {other.__name__}"
                yield name, lambda twin: setattr(twin, "op", other())
        case ast.Compare(ops=[op, *_]):
            if other := _SWAPS.get(type(op)):
                name = f"{type(op).__name__} to {other.__name__}"
                yield name, lambda twin: twin.ops.__setitem__(0, other())
        case ast.Constant(value=bool() as value):
            yield f"{value} to {not value}", lambda n: setattr(n, "value", not value)
        case ast.Constant(value=int() | float() as value):
            yield f"{value} to {value + 1}", lambda n: setattr(n, "value", value + 1)
        case ast.Return(value=ast.expr()):
            yield "another value returned", _return_another


def _return_another(node: ast.Return) -> None:
    node.value = ast.Call(
        ast.Name("_changed", ast.Load()), [node.value or ast.Constant(None)], []
    )


def _source(tree: ast.Module) -> str:
    """As text; `_changed` comes last, since a program may begin with `__future__`."""
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n" + _CHANGED


def _passes(fields: dict[str, Any], source: str) -> bool:
    verdict = judge.verify(Sample("code", source, fields))
    return verdict.status is Status.CORRECT
