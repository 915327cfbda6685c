"""From the name of a verifier to the function.

A registered verifier costs one line in `BUILT_IN` and is imported when first used. A
user's own is named by where it lives: "mine.py:check" or "package.module:check".
"""

import difflib
import hashlib
import importlib
import importlib.util
import pathlib
import sys
import types
from typing import cast

from rlvr_jax.errors import UserError
from rlvr_jax.verifiers.base import Verifier, reads_of

BUILT_IN = {
    "math": "rlvr_jax.verifiers.math:verify",
    "exact": "rlvr_jax.verifiers.exact:verify",
    "countdown": "rlvr_jax.verifiers.countdown:verify",
    "closeness": "rlvr_jax.verifiers.closeness:verify",
    "navigation": "rlvr_jax.verifiers.navigation:verify",
    "gym": "rlvr_jax.verifiers.gym:verify",
    "code": "rlvr_jax.verifiers.code.judge:verify",
    "code:held_out": "rlvr_jax.verifiers.code.judge:held_out",
    "instructions": "rlvr_jax.verifiers.instructions.verify:verify",
    "weak:last_number": "rlvr_jax.verifiers.weak:last_number",
    "weak:any_boxed": "rlvr_jax.verifiers.weak:any_boxed",
    "weak:exact_string": "rlvr_jax.verifiers.weak:exact_string",
    "weak:mentions": "rlvr_jax.verifiers.weak:mentions",
    "answer_key": "rlvr_jax.verifiers.spurious:answer_key",
    "steps": "rlvr_jax.verifiers.steps:verify",
    "format:think": "rlvr_jax.verifiers.format:think",
    "format:boxed": "rlvr_jax.verifiers.format:boxed",
    "format:answer_tag": "rlvr_jax.verifiers.format:answer_tag",
    "format:think_boxed": "rlvr_jax.verifiers.format:think_boxed",
    "format:think_answer": "rlvr_jax.verifiers.format:think_answer",
    "format:think_flag": "rlvr_jax.verifiers.format:think_flag",
    "language": "rlvr_jax.verifiers.language:consistency",
    "language:same": "rlvr_jax.verifiers.language:agreement",
    "repetition": "rlvr_jax.verifiers.repetition:readable",
}


def resolve(name: str) -> Verifier:
    """The verifier of that name, imported.

    Args:
      name: a key of `BUILT_IN`, "path/to/file.py:function" (relative to the current
        directory) or "package.module:function".

    Raises:
      UserError: the name is unknown (with the nearest known one), the file, module
        or function does not exist or cannot be imported, or it is no function.
    """
    place = BUILT_IN.get(name)
    if place is None:
        place = name
        if ":" not in name or name.startswith(("format:", "weak:", "code:")):
            raise UserError(_unknown(name))
    module_name, _, function_name = place.rpartition(":")
    module = _load(module_name, name)
    verifier = getattr(module, function_name, None)
    if verifier is None:
        near = difflib.get_close_matches(function_name, dir(module), n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise UserError(
            f"verifier {name!r}: {module_name} has no {function_name!r}{hint}"
        )
    if not callable(verifier):
        raise UserError(
            f"verifier {name!r}: {function_name!r} is {type(verifier).__name__}, "
            "not a function"
        )
    found = cast(Verifier, verifier)
    reads_of(found)
    return found


def _unknown(name: str) -> str:
    near = difflib.get_close_matches(name, BUILT_IN, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return (
        f"unknown verifier {name!r}; {hint}Known: {', '.join(BUILT_IN)}. "
        "Your own is written 'path/file.py:function' or 'package.module:function'."
    )


def _load(module_name: str, name: str) -> types.ModuleType:
    if module_name.endswith(".py"):
        return _load_file(pathlib.Path(module_name).expanduser(), name)
    try:
        return importlib.import_module(module_name)
    except Exception as error:
        raise UserError(
            f"verifier {name!r}: cannot import {module_name!r}: "
            f"{type(error).__name__}: {error}"
        ) from error


def _load_file(path: pathlib.Path, name: str) -> types.ModuleType:
    path = path.resolve()
    if not path.is_file():
        raise UserError(f"verifier {name!r}: there is no file {path}")
    digest = hashlib.sha256(str(path).encode()).hexdigest()[:8]
    module_name = f"rlvr_jax_own_{path.stem}_{digest}"
    if module_name in sys.modules:
        return sys.modules[module_name]
    spec = importlib.util.spec_from_file_location(module_name, path)
    if spec is None or spec.loader is None:
        raise UserError(f"verifier {name!r}: {path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))  # so that the file can import its neighbours
    sys.modules[module_name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[module_name]
        raise UserError(
            f"verifier {name!r}: {path} cannot be run: {type(error).__name__}: {error}"
        ) from error
    return module
