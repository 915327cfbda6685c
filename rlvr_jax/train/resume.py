"""A run folder continues the run that made it, or refuses."""

import json
import pathlib

from rlvr_jax import config as config_lib
from rlvr_jax.config import Config
from rlvr_jax.validate import ConfigError

FREE = (
    "run_dir",
    "logging.",
    "checkpoint.",
    "evaluation.",
    "mesh.",
    "reward.execution",
    "reward.workers",
    "reward.timeout_s",
    "reward.max_failure_rate",
    "reward.check_references",
    "audit.",
    "judge.url",
    "judge.api_key_env",
    "judge.concurrency",
    "judge.timeout_s",
    "judge.retries",
    "judge.price_",
    "batch.micro_batch_size",
    "batch.logprob_chunk_tokens",
    "batch.packing",
    "model.remat",
)
"""Settings that may change on resume: they do not change what is learned, beyond
float32 rounding."""


def check_same_run(config: Config, folder: pathlib.Path) -> None:
    """Raises a ConfigError that lists settings which differ from the folder's own.

    `steps` may change too, unless the learning rate depends on it.
    """
    path = folder / "config.json"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        return
    try:
        saved = json.loads(path.read_text(encoding="utf8"))
        if not isinstance(saved, dict):
            raise ValueError(f"it holds {saved!r:.40}, no settings")
    except ValueError as error:
        raise ConfigError(
            f"run_dir={folder}: {path.name} is not readable ({error}); remove the "
            "folder or choose another --config.run_dir."
        ) from error
    free = FREE if config.optimizer.schedule != "constant" else (*FREE, "steps")
    changed = {
        name: pair
        for name, pair in config_lib.differences(
            config_lib.to_dict(config), saved
        ).items()
        if not name.startswith(free)
    }
    if changed:
        lines = "\n".join(
            f"  {name}: {before!r} there, {now!r} now"
            for name, (now, before) in changed.items()
        )
        raise ConfigError(
            f"run_dir={folder} holds a run with other settings:\n{lines}\nGive those "
            "values to continue it, or choose another --config.run_dir."
        )
