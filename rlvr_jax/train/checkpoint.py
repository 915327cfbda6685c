"""Saving and restoring the whole state of a run, through orbax."""

import pathlib
from typing import Any

import jax
import orbax.checkpoint as ocp
from flax import nnx

from rlvr_jax.config import CheckpointConfig
from rlvr_jax.errors import UserError
from rlvr_jax.mesh.processes import anywhere, failing_together
from rlvr_jax.train.abstract import StandIn
from rlvr_jax.train.checksums import check_sums, host_checksums, text_checksum
from rlvr_jax.train.late_tracebacks import without_late_tracebacks
from rlvr_jax.train.preservation import Best, preservation, superseded
from rlvr_jax.train.state import TrainState

SPOILT = "spoilt_checkpoints"
"""Where those that cannot be read lie, beside the others."""
SCORES = "checkpoint_scores.json"
"""What evaluations found, for checkpoint.keep_best."""


class OtherShapes(UserError):
    """A checkpoint of another model than the run's."""


class Checkpoints:
    """The checkpoints of one run folder, numbered by steps learned from.

    What is random in a run is a function of (seed, step), and so is the order of the
    data: parameters, optimizer, reference and the step number are the whole state.
    Saving is asynchronous and atomic: a killed save leaves the one before it.
    """

    def __init__(self, directory: pathlib.Path, settings: CheckpointConfig):
        """Opens (or makes) the folder; a half-written checkpoint in it is ignored."""
        without_late_tracebacks()
        self.best = Best(settings.keep_best, directory.parent / SCORES)
        self._policy = preservation(settings, self.best)
        options = ocp.CheckpointManagerOptions(
            preservation_policy=self._policy,
            enable_async_checkpointing=True,
        )
        self._manager = ocp.CheckpointManager(
            directory.absolute(),
            options=options,
            item_handlers={
                "state": ocp.StandardCheckpointHandler(),
                "extra": ocp.JsonCheckpointHandler(),
            },
        )

    @property
    def latest(self) -> int | None:
        """The newest complete step, or None."""
        return self._manager.latest_step()

    def save(self, state: TrainState, step: int, extra: dict[str, Any]) -> None:
        """Saves `state` and JSON values `extra`; returns once copied to the host.

        Args:
          state: of the run.
          step: its number.
          extra: what else the run needs to go on.

        Raises:
          OSError: the disk is full or cannot be written; what was saved before stays.
        """
        arrays = _named(state)[0]
        sums = host_checksums(arrays) | {"extra": text_checksum(extra)}
        try:
            self._manager.save(
                step,
                args=ocp.args.Composite(
                    state=ocp.args.StandardSave(arrays),
                    extra=ocp.args.JsonSave(extra | {"checksums": sums}),
                ),
                force=True,
            )
        except Exception as error:
            raise self._cannot_save(error) from error

    def _cannot_save(self, error: Exception) -> OSError:
        whole = self._manager.latest_step()
        before = "there is none before it"
        if whole is not None:
            before = f"the one before it (step {whole}) is whole"
        return OSError(
            f"checkpoint: cannot be saved under {self._manager.directory}: "
            f"{_first_line(error)}. The run stops; {before}. Make room and start the "
            "same command again."
        )

    def restore(self, like: TrainState | StandIn) -> tuple[TrainState, dict[str, Any]]:
        """The newest state that can be read, shaped, typed and placed like `like`.

        What cannot be read is named, and set aside once an older one is read: where
        none can be, the fault may be another (memory, a disk that is away) and pass.
        Of several processes all take the same one.

        Raises:
          UserError: there is none, it holds other arrays than `like`, or none can be
            read; nothing was moved then.
        """
        self._manager.wait_until_finished()
        failed: dict[int, str] = {}
        for step in sorted(self._manager.all_steps(), reverse=True):
            try:
                found = self._restore(step, like)
            except OtherShapes:
                raise
            except Exception as error:
                # Its words alone: with the error half a state would stay in memory.
                failed[step] = _first_line(error)
                continue
            self._set_aside(failed)
            return found
        raise UserError(
            f"checkpoint: none to restore under {self._manager.directory}"
            + "".join(f"\n  step {step}: {why}" for step, why in failed.items())
            + "\nNothing was moved. Start the same command again once the reason is "
            "gone (too little memory, a disk that is away); if they are damaged, put a "
            "copy back or choose another --config.run_dir."
        )

    def _set_aside(self, failed: dict[int, str]) -> None:
        """Moves checkpoints that cannot be read out of the way of new ones."""
        folder = pathlib.Path(str(self._manager.directory))
        for step, why in failed.items():
            place = folder.parent / SPOILT / str(step)
            if jax.process_index() == 0:
                place.parent.mkdir(exist_ok=True)
                place = place.with_name(f"{step}-{len(list(place.parent.iterdir()))}")
                (folder / str(step)).rename(place)
                said = f"checkpoint: step {step} cannot be read ({why}); moved to"
                print(f"{said} {place}.", flush=True)
        if failed:
            anywhere(False)  # All wait for the moves.
            self._manager.reload()
            if jax.process_index() == 0:
                print(f"The run goes on from step {self.latest}.", flush=True)

    def drop_superseded(self) -> None:
        """Deletes what newer ones have replaced, as each save does at its end.

        A process killed between writing the last checkpoint and deleting the oldest
        leaves one too many, which no further save of a finished run would take away.
        """
        for step in superseded(self._policy, self._manager.all_steps()):
            self._manager.delete(step)

    def _restore(
        self, step: int, like: TrainState | StandIn
    ) -> tuple[TrainState, dict[str, Any]]:
        named, tree = _named(like)
        # Not jax.tree.map, which sorts the names and so would mix the leaves up.
        wanted = {
            name: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=leaf.sharding)
            for name, leaf in named.items()
        }
        with failing_together():
            extra, arrays = self._read(step, wanted)
        with failing_together():
            if (sums := extra.pop("checksums", None)) is not None:
                found = {name: arrays[name] for name in wanted}
                found = host_checksums(found) | {"extra": text_checksum(extra)}
                check_sums(found, sums)
        leaves = [arrays[name] for name in wanted]
        return jax.tree.unflatten(tree, leaves), extra

    def _read(self, step: int, wanted: dict[str, jax.ShapeDtypeStruct]):
        """What lies there; each process reads its own part and waits for nobody."""
        self._check_shapes(step, {name: leaf.shape for name, leaf in wanted.items()})
        me = jax.process_index()
        alone = ocp.options.MultiprocessingOptions(
            primary_host=me, active_processes={me}, barrier_sync_key_prefix=f"read{me}"
        )
        handler = ocp.CompositeCheckpointHandler(
            state=ocp.StandardCheckpointHandler(multiprocessing_options=alone),
            extra=ocp.JsonCheckpointHandler(multiprocessing_options=alone),
        )
        with ocp.Checkpointer(handler, multiprocessing_options=alone) as checkpointer:
            found = checkpointer.restore(
                self._manager.directory / str(step),
                args=ocp.args.Composite(
                    state=ocp.args.StandardRestore(wanted), extra=ocp.args.JsonRestore()
                ),
            )
        return found["extra"], found["state"]

    def restore_parameters(
        self, like: nnx.State, step: int | None = None
    ) -> tuple[nnx.State, int]:
        """A policy alone, without optimizer or reference, and its step.

        Args:
          like: shapes, types and shardings.
          step: of the checkpoint; the newest by default.

        Raises:
          UserError: there is none, or it holds other arrays than `like`.
        """
        known = self._manager.all_steps()
        step = self.latest if step is None else step
        if step is None or step not in known:
            raise UserError(
                f"checkpoint: none to restore under {self._manager.directory}"
                + (f" of step {step}; there are {known}." if known else ".")
            )
        leaves = jax.tree_util.tree_leaves_with_path(like)
        wanted = {
            f".parameters{jax.tree_util.keystr(path)}": jax.ShapeDtypeStruct(
                leaf.shape, leaf.dtype, sharding=leaf.sharding
            )
            for path, leaf in leaves
        }
        self._check_shapes(
            step, {name: leaf.shape for name, leaf in wanted.items()}, ".parameters"
        )
        with ocp.Checkpointer(ocp.PyTreeCheckpointHandler()) as checkpointer:
            restored = checkpointer.restore(
                self._manager.directory / str(step) / "state",
                args=ocp.args.PyTreeRestore(
                    wanted,
                    restore_args=ocp.checkpoint_utils.construct_restore_args(wanted),
                    partial_restore=True,
                ),
            )
        arrays = {name: restored[name] for name in wanted}
        args = ocp.args.Composite(extra=ocp.args.JsonRestore())
        extra = self._manager.restore(step, args=args)["extra"]
        if (sums := extra.get("checksums")) is not None:
            check_sums(host_checksums(arrays), sums)
        leaves = list(arrays.values())
        return jax.tree.unflatten(jax.tree.structure(like), leaves), step

    def _check_shapes(
        self, step: int, wanted: dict[str, tuple[int, ...]], part: str = ""
    ) -> None:
        # Before reading: orbax would leave half of its reads behind.
        metadata = self._manager.item_metadata(step)["state"]
        saved = {
            name: tuple(leaf.shape)
            for name, leaf in metadata.items()
            if name.startswith(part)
        }
        differ = [
            f"{name}: {saved.get(name, 'not')} there, {wanted.get(name, 'not')} here"
            for name in sorted(saved.keys() | wanted.keys())
            if saved.get(name) != wanted.get(name)
        ]
        if differ:
            raise OtherShapes(
                f"checkpoint: step {step} under {self._manager.directory} has "
                "arrays of other shapes than the model:\n  "
                + "\n  ".join(differ[:5])
                + "\nChoose another --config.run_dir, or the model of that run."
            )

    def close(self) -> None:
        """Waits for a save under way.

        Raises:
          OSError: it failed; what was saved before stays.
        """
        try:
            self._manager.wait_until_finished()
        except Exception as error:
            raise self._cannot_save(error) from error
        finally:
            self._manager.close()

    def __enter__(self) -> "Checkpoints":
        """The checkpoints themselves; closed at the end of the body."""
        return self

    def __exit__(self, kind: object, *exception: object) -> None:
        """Closes them; an error of the body goes before one of the last save."""
        try:
            self.close()
        except OSError:
            if kind is None:
                raise


def _first_line(error: Exception) -> str:
    """Its beginning and its end: the reason is last in what tensorstore says."""
    line = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return line if len(line) <= 300 else f"{line[:120]} ... {line[-160:]}"


def _named(state: TrainState | StandIn) -> tuple[dict[str, Any], Any]:
    """Every leaf of the state by its path, in their order; and the tree they make."""
    if isinstance(state, StandIn):
        return dict(zip(state.names, state.leaves, strict=True)), state.tree
    leaves, tree = jax.tree_util.tree_flatten_with_path(state)
    return {jax.tree_util.keystr(path): leaf for path, leaf in leaves}, tree
