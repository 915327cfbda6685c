"""Saving and restoring the whole state of a run, through orbax."""

import logging
import pathlib
from typing import Any

import jax
import orbax.checkpoint as ocp

from rlvr_jax.train.step import TrainState


class Checkpoints:
    """The checkpoints of one run folder, numbered by steps learned from.

    What is random in a run is a function of (seed, step), and so is the order of the
    data: parameters, optimizer, reference and the step number are the whole state.
    Saving is asynchronous and atomic: a killed save leaves the one before it.
    """

    def __init__(self, directory: pathlib.Path, keep: int):
        """Opens (or makes) the folder; a half-written checkpoint in it is ignored."""
        logging.getLogger("absl").setLevel(logging.WARNING)
        options = ocp.CheckpointManagerOptions(
            max_to_keep=keep, enable_async_checkpointing=True
        )
        self._manager = ocp.CheckpointManager(
            directory.absolute(), options=options, item_names=("state", "extra")
        )

    @property
    def latest(self) -> int | None:
        """The newest complete step, or None."""
        return self._manager.latest_step()

    def save(self, state: TrainState, step: int, extra: dict[str, Any]) -> None:
        """Saves `state` and JSON values `extra`; returns once copied to the host."""
        self._manager.save(
            step,
            args=ocp.args.Composite(
                state=ocp.args.StandardSave(_named(state)),
                extra=ocp.args.JsonSave(extra),
            ),
            force=True,
        )

    def restore(self, like: TrainState) -> tuple[TrainState, dict[str, Any]]:
        """The newest state, with the shapes, types and shardings of `like`.

        Raises:
          ValueError: the checkpoint holds other parameters than the model has.
        """
        # Not jax.tree.map, which sorts the names and so would mix the leaves up.
        wanted = {
            name: ocp.utils.to_shape_dtype_struct(leaf)
            for name, leaf in _named(like).items()
        }
        restored = self._manager.restore(
            self.latest,
            args=ocp.args.Composite(
                state=ocp.args.StandardRestore(wanted), extra=ocp.args.JsonRestore()
            ),
        )
        leaves = [restored["state"][name] for name in wanted]
        return jax.tree.unflatten(jax.tree.structure(like), leaves), restored["extra"]

    def close(self) -> None:
        """Waits for a save under way."""
        self._manager.wait_until_finished()
        self._manager.close()


def _named(state: TrainState) -> dict[str, jax.Array]:
    """Every array of the state by its path, in the order of its leaves."""
    leaves = jax.tree_util.tree_leaves_with_path(state)
    return {jax.tree_util.keystr(path): leaf for path, leaf in leaves}
