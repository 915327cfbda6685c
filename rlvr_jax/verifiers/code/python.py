"""Reading and running Python text without a word about its style."""

import ast
import types
import warnings
from typing import Any


def parse(source: str) -> ast.Module:
    r"""The syntax tree of a program; "\d" in a plain string is nobody's business here.

    Raises:
      SyntaxError, ValueError, RecursionError, MemoryError: it is no Python.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(source)


def run(source: str | ast.Module, name: str, namespace: dict[str, Any]) -> None:
    """Runs trusted code. Whatever -O this process has, an assert is an assert."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        code: types.CodeType = compile(
            source, name, "exec", dont_inherit=True, optimize=0
        )
    exec(code, namespace)
