"""Who may import whom: the table of docs/architecture.md, read from the source itself.

Nothing is imported to find out, so this runs in a moment. Imports inside functions
count like those at the top.
"""

import ast
import dataclasses
import pathlib
import subprocess
import sys
import typing

import pytest

from rlvr_jax import config

ROOT = pathlib.Path(__file__).parents[1]
ANY = None
"""Any third-party package."""
JAX = {"jax", "jaxtyping"}


@dataclasses.dataclass(frozen=True)
class Layer:
    """What a layer may import beside itself and the standard library."""

    ours: set[str]
    others: set[str] | None


LAYERS = {
    "types": Layer(set(), JAX),
    "objective_config": Layer(set(), set()),
    "errors": Layer(set(), set()),
    "config": Layer({"objective_config", "errors"}, set()),
    "objective_rules": Layer({"config"}, set()),
    "ignored": Layer({"config", "objective_config", "core", "objective_rules"}, set()),
    "validate": Layer(
        {"config", "errors", "core", "objective_rules", "ignored"}, set()
    ),
    "sweeps": Layer({"config", "ignored", "validate"}, set()),
    # numpy for pass@k, which is counted on the host in float64.
    "core": Layer({"types"}, JAX | {"numpy"}),
    # Worker processes start from here: no arrays, no devices.
    "verifiers": Layer({"errors"}, {"mpmath"}),
    "mesh": Layer({"types", "config", "errors"}, ANY),
    "models": Layer({"types", "config", "errors", "core", "mesh"}, ANY),
    "data": Layer({"types", "config", "errors"}, ANY),
    "rollout": Layer(
        {"types", "config", "errors", "core", "mesh", "models", "data", "verifiers"},
        ANY,
    ),
    "analysis": Layer({"types", "config", "core"}, ANY),
    "toys": Layer({"types", "core"}, JAX | {"numpy"}),
}
LAYERS["train"] = Layer(set(LAYERS), ANY)
LAYERS["planning"] = Layer(set(LAYERS), ANY)
LAYERS["launch"] = Layer(set(LAYERS), ANY)
LAYERS["configs"] = Layer({"config", "core", "sweeps"}, set())

PURE_LIBRARY = {
    "collections",
    "dataclasses",
    "functools",
    "itertools",
    "math",
    "types",
    "typing",
}
"""What `core` takes from the standard library: nothing that reads or writes."""
IMPURE = {
    "open",
    "print",
    "load",
    "save",
    "callback",
    "io_callback",
    "pure_callback",
    "debug_callback",
    "device_put",
    "device_get",
}


def sources(*folders):
    return [
        path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))
    ]


def layer_of(path):
    """`rlvr_jax/core/kl.py` -> core, `rlvr_jax/types.py` -> types, else the folder."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return parts[1] if parts[0] == "rlvr_jax" else parts[0]


def imports(tree):
    """(line, dotted name) of everything that is imported, also inside functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            yield from ((node.lineno, f"{module}.{a.name}") for a in node.names)


def fault(layer, name):
    """What is wrong with `import name` in that layer, or nothing."""
    rule, (first, _, rest) = LAYERS[layer], name.partition(".")
    if not first:
        return "is relative"
    if first == "rlvr_jax":
        first = rest.partition(".")[0]
    elif first not in ("launch", "configs", "tests"):
        third_party = first not in sys.stdlib_module_names
        if third_party and rule.others is not ANY and first not in rule.others:
            return f"is not for {layer}"
        return ""
    allowed = rule.ours | {layer}
    return "" if first in allowed else f"is above {layer} or beside it"


def test_every_import_keeps_to_its_layer():
    faults = []
    for path in sources("rlvr_jax", "launch", "configs"):
        layer = layer_of(path)
        if layer == "__init__":
            continue
        assert layer in LAYERS, f"{layer} needs a row in LAYERS and in the docs"
        for line, name in imports(ast.parse(path.read_text("utf8"))):
            if wrong := fault(layer, name):
                faults.append(f"{path.relative_to(ROOT)}:{line}: {name} {wrong}")
    assert faults == []


@pytest.mark.parametrize(
    ("layer", "name"),
    [
        ("core", "rlvr_jax.config.Objective"),
        ("core", "optax"),
        ("types", "rlvr_jax.core.kl"),
        ("config", "numpy"),
        ("core", "rlvr_jax.errors.UserError"),
        ("verifiers", "numpy"),
        ("verifiers", "rlvr_jax.types.Rollouts"),
        ("data", "rlvr_jax.models.decoder"),
        ("models", "rlvr_jax.data.tokenizer"),
        ("rollout", "rlvr_jax.train.step"),
        ("analysis", "rlvr_jax.train.loop"),
        ("train", "launch.flags"),
        ("train", "rlvr_jax.launch"),
        ("mesh", "..types.Ratio"),
    ],
)
def test_imports_upwards_are_found(layer, name):
    assert fault(layer, name)


def test_nothing_is_imported_by_the_package_itself():
    """Verifier processes start with `import rlvr_jax`."""
    tree = ast.parse((ROOT / "rlvr_jax" / "__init__.py").read_text("utf8"))
    assert list(imports(tree)) == []


def test_core_is_pure():
    """No I/O, no callbacks, no placement: of the library only what computes."""
    faults = []
    for path in sources("rlvr_jax/core"):
        tree = ast.parse(path.read_text("utf8"))
        for line, name in imports(tree):
            first = name.partition(".")[0]
            if first in sys.stdlib_module_names and first not in PURE_LIBRARY:
                faults.append(f"{path.name}:{line}: imports {name}")
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                called = getattr(node.func, "attr", getattr(node.func, "id", ""))
                if called in IMPURE:
                    faults.append(f"{path.name}:{node.lineno}: calls {called}")
    assert faults == []


def test_a_verifier_process_starts_without_arrays():
    code = "import rlvr_jax.verifiers.worker, sys; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert "rlvr_jax" in loaded
    assert loaded & {"jax", "jaxlib", "numpy", "flax", "optax", "torch"} == set()


def reads():
    """Receiver and name of every attribute read outside of the settings' own modules.

    `config.batch.micro_batch_size` and `batch.micro_batch_size` both give ("batch",
    "micro_batch_size").
    """
    own = {ROOT / "rlvr_jax" / "config.py", ROOT / "rlvr_jax" / "validate.py"}
    nodes = (
        node
        for path in set(sources("rlvr_jax", "launch")) - own
        for node in ast.walk(ast.parse(path.read_text("utf8")))
    )
    return {
        (getattr(node.value, "attr", getattr(node.value, "id", "")), node.attr)
        for node in nodes
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
    }


def settings(kind: type = config.Config, section="config"):
    """(section, field) of every setting; those of a section carry its name."""
    hints = typing.get_type_hints(kind)
    for field in dataclasses.fields(kind):
        yield section, field.name
        if dataclasses.is_dataclass(hints[field.name]):
            yield from settings(hints[field.name], field.name)


def unread(found, wanted):
    return [
        f"{section}.{name}"
        for section, name in wanted
        # In this project settings go by their section's name, or these two.
        if not found & {(owner, name) for owner in (section, "settings", "o")}
    ]


def test_every_setting_is_read():
    """A setting that does nothing is a bug: each is read as SECTION.FIELD somewhere.

    A section passed on under another name is called `settings` (or `o` for the
    objective), so that this can tell `reward.format` from any other `.format`.
    """
    assert unread(reads(), settings()) == []


def test_a_dead_setting_is_found():
    assert unread(reads(), [("batch", "dtype"), ("batch", "micro_batch_size")]) == [
        "batch.dtype"
    ]


def test_every_dataclass_is_a_section():
    """So that `settings` sees all of them."""
    hints = typing.get_type_hints(config.Config).values()
    sections = {hint for hint in hints if dataclasses.is_dataclass(hint)}
    defined = {kind for kind in vars(config).values() if dataclasses.is_dataclass(kind)}
    assert defined == sections | {config.Config}
