"""Reading a recipe and its overrides from the command line, with errors that help."""

import dataclasses
import difflib
import sys
import typing
from collections.abc import Callable

from absl import app, flags
from ml_collections import config_flags

from rlvr_jax.config import Config, Objective
from rlvr_jax.core.presets import PRESETS
from rlvr_jax.errors import UserError
from rlvr_jax.validate import ConfigError, validate


class _PresetParser(flags.ArgumentParser):
    """`--config.objective=dapo` puts a preset in place; later flags change fields."""

    def parse(self, argument: str | Objective) -> Objective:
        if isinstance(argument, Objective):
            return argument
        if argument not in PRESETS:
            raise ConfigError(
                f"config: objective={argument!r} is none of the presets "
                f"{', '.join(PRESETS)}{suggestion(argument, list(PRESETS))}"
            )
        return Objective(name=argument, **PRESETS[argument])

    def flag_type(self) -> str:
        return "objective preset"


config_flags.register_flag_parser_for_type(Objective, _PresetParser())
_CONFIG = config_flags.DEFINE_config_file(
    "config", None, "A recipe: a Python file with get_config() -> Config."
)

_NO_RECIPE = "config: give a recipe, as --config=configs/quickstart.py"


def run(main: Callable[[Config], int | None]) -> None:
    """Parses argv, checks the settings and calls `main(config)`.

    Faults of the settings, the data or the model end with their message alone and exit
    status 2; anything else keeps its traceback.
    """

    def with_config(argv: list[str]) -> int | None:
        if len(argv) > 1:
            raise ConfigError(
                f"config: unexpected argument {argv[1]!r}. Settings are written "
                "--config.NAME=VALUE."
            )
        config = _CONFIG.value
        if config is None:
            raise ConfigError(_NO_RECIPE)
        if not isinstance(config, Config):
            raise ConfigError(
                "config: get_config() of the recipe must return a "
                f"rlvr_jax.config.Config, got {type(config).__name__}."
            )
        validate(config)
        return main(config)

    try:
        _check_names(sys.argv[1:])
        _check_groups(sys.argv[1:])
        app.run(with_config, flags_parser=_parse)
    except (UserError, flags.Error, FileNotFoundError) as error:
        print(f"error: {_plain(error)}", file=sys.stderr)
        sys.exit(2)


def suggestion(name: str, known: list[str]) -> str:
    """'; did you mean X?' when something close exists, else nothing."""
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f"; did you mean {close[0]}?" if close else ""


def setting_names(kind: type = Config, prefix: str = "") -> list[str]:
    """Dotted names of all settings."""
    names: list[str] = []
    for name, hint in typing.get_type_hints(kind).items():
        names.append(prefix + name)
        if dataclasses.is_dataclass(hint):
            names += setting_names(typing.cast(type, hint), f"{prefix}{name}.")
    return names


def _parse(argv: list[str]) -> list[str]:
    """Parses as absl does, but leaves its errors to `run`: absl would exit with 1."""
    given = {argument.split("=", 1)[0].lstrip("-") for argument in argv[1:]}
    if "config" not in given and any(name.startswith("config.") for name in given):
        raise ConfigError(_NO_RECIPE)
    try:
        rest = flags.FLAGS(argv)
        # A recipe that could not be opened says so once it is looked into.
        getattr(_CONFIG.value, "run_dir", None)
    except OSError as error:
        raise ConfigError(
            f"config: the recipe cannot be read: {error.__cause__ or error}"
        ) from error
    return rest


def _check_names(arguments: list[str]) -> None:
    known = setting_names()
    for argument in arguments:
        flag = argument.split("=", 1)[0].lstrip("-")
        if not argument.startswith("-"):
            continue
        # --noconfig.data.shuffle is --config.data.shuffle=false.
        flag = flag.removeprefix("no") if flag.startswith("noconfig.") else flag
        if not flag.startswith("config."):
            continue
        name = flag.removeprefix("config.")
        if name not in known:
            tails = [
                n for n in known if n.rsplit(".", 1)[-1] == name.rsplit(".", 1)[-1]
            ]
            guess = suggestion(name, tails or known)
            raise ConfigError(f"config: unknown setting {name}{guess}")


def _check_groups(arguments: list[str]) -> None:
    """`--config.mesh=3` sets no setting; --config.objective=PRESET does."""
    known = setting_names()
    for argument in arguments:
        name = argument.split("=", 1)[0].lstrip("-").removeprefix("config.")
        inside = [n for n in known if n.startswith(f"{name}.")]
        if inside and name != "objective":
            raise ConfigError(
                f"config: {name} is a group of settings; give one of them, as "
                f"--config.{inside[0]}=VALUE ({', '.join(inside)})."
            )


def _plain(error: Exception) -> str:
    return str(error).strip() or type(error).__name__
