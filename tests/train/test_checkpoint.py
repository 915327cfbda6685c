"""What is saved comes back bit for bit; what was half written does not."""

import dataclasses
import os
import shutil
import socket
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from rlvr_jax.config import CheckpointConfig, Objective
from rlvr_jax.train.checkpoint import Checkpoints
from rlvr_jax.train.policy import new_state
from rlvr_jax.train.state import TrainState
from tests import bigram, tiny

TEMPORARY = ".orbax-checkpoint-tmp"
OPTIMIZER = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(0.1))


def a_state(seed=0, step=3, keeps_reference=True):
    """A state with no two arrays alike, as after some steps."""
    parameters = bigram.policy(seed)[1]
    moments = jax.tree.map(
        lambda leaf: (
            leaf + jax.random.normal(jax.random.key(seed), leaf.shape)
            if leaf.dtype == jnp.float32
            else leaf + step
        ),
        OPTIMIZER.init(parameters),
    )
    reference = bigram.policy(seed + 1)[1] if keeps_reference else None
    return TrainState(parameters, moments, reference, jnp.int32(step))


def assert_equal(found, expected):
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(jax.device_get(a), jax.device_get(b))


@pytest.fixture
def opened(tmp_path):
    """Opens the checkpoints of the folder; closes them at the end."""
    managers = []

    def open_(settings=None, folder=tmp_path / "checkpoints"):
        managers.append(Checkpoints(folder, settings or CheckpointConfig(keep=2)))
        return managers[-1]

    yield open_
    for manager in managers:
        manager.close()


@pytest.mark.parametrize("keeps_reference", [True, False])
def test_a_state_comes_back_bit_for_bit(opened, keeps_reference):
    """Parameters, moments, counts, reference, step, and JSON beside them."""
    state = a_state(keeps_reference=keeps_reference)
    extra = {"before": {"pass@1": [0.25, 0.125, 0.5]}, "none": None}
    first = opened()
    assert first.latest is None
    first.save(state, 3, extra)
    first.close()
    second = opened()
    assert second.latest == 3
    blank = jax.tree.map(jnp.zeros_like, state)
    found, with_it = second.restore(like=blank)
    assert_equal(found, state)
    assert with_it == extra


def test_saving_copies_before_the_arrays_are_donated(opened):
    """The next step may reuse the memory while the save is still under way."""
    state = a_state()
    expected = [np.array(leaf) for leaf in jax.tree.leaves(state)]
    checkpoints = opened()
    checkpoints.save(state, 3, {})
    for leaf in jax.tree.leaves(state):
        leaf.delete()
    checkpoints.close()
    found = opened().restore(like=a_state(7))[0]
    for a, b in zip(jax.tree.leaves(found), expected, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_half_written_newer_checkpoint_is_ignored(opened, tmp_path):
    """Orbax writes under a temporary name and renames once all files are there; a
    killed save leaves the temporary folder."""
    checkpoints = opened()
    checkpoints.save(a_state(), 3, {"step": 3})
    checkpoints.close()
    folder = tmp_path / "checkpoints"
    shutil.copytree(folder / "3", folder / f"9{TEMPORARY}")
    (folder / f"10{TEMPORARY}").mkdir()
    again = opened()
    assert again.latest == 3
    found, extra = again.restore(like=a_state(7))
    assert_equal(found, a_state())
    assert extra == {"step": 3}


def test_the_newest_are_kept_and_restored(opened, tmp_path):
    checkpoints = opened()
    for step in (1, 2, 3):
        checkpoints.save(a_state(seed=step, step=step), step, {"step": step})
    checkpoints.close()
    kept = {path.name for path in (tmp_path / "checkpoints").iterdir()}
    assert kept == {"2", "3"}
    found, extra = opened().restore(like=a_state())
    assert_equal(found, a_state(seed=3))
    assert extra == {"step": 3}


def test_a_state_of_one_device_restores_onto_eight(opened):
    """The checkpoint has no mesh: resuming may use another one."""
    state = a_state()
    checkpoints = opened()
    checkpoints.save(state, 3, {})
    checkpoints.close()
    graphdef, parameters = bigram.policy(5)
    plan = tiny.plan(
        graphdef, Objective(beta=0.1), mesh_shape=(2, 2, 2), optimizer=OPTIMIZER
    )
    like = new_state(parameters, plan)
    found, _ = opened().restore(like=like)
    assert_equal(found, state)
    pairs = zip(jax.tree.leaves(found), jax.tree.leaves(like), strict=True)
    for a, b in pairs:
        assert a.sharding.is_equivalent_to(b.sharding, a.ndim)
        assert len(a.sharding.device_set) == 8


def test_parameters_of_other_shapes_are_an_error(opened):
    checkpoints = opened()
    checkpoints.save(a_state(), 3, {})
    checkpoints.close()
    checkpoints = opened()
    wider = a_state()
    wider = dataclasses.replace(
        wider, parameters=jax.tree.map(lambda x: jnp.zeros((99, 8)), wider.parameters)
    )
    with pytest.raises(ValueError, match="other shapes than the model") as caught:
        checkpoints.restore(like=wider)
    shapes = "(61, 8) there, (99, 8) here"
    assert f"\n  .parameters['head'].value: {shapes}\n" in str(caught.value)


def test_a_state_without_what_was_saved_is_an_error(opened):
    """A reference was saved; a run at beta 0 has none. And the other way around."""
    checkpoints = opened()
    checkpoints.save(a_state(), 3, {})
    checkpoints.close()
    checkpoints = opened()
    without = dataclasses.replace(a_state(), reference=None)
    with pytest.raises(ValueError, match=r"reference.*: \(61, 8\) there, not here"):
        checkpoints.restore(like=without)
    checkpoints.save(without, 4, {})
    checkpoints.close()
    checkpoints = opened()
    with pytest.raises(ValueError, match=r"reference.*: not there, \(61, 8\) here"):
        checkpoints.restore(like=a_state())


def test_nothing_to_restore_is_an_error(opened):
    with pytest.raises(ValueError, match="none to restore under"):
        opened().restore(like=a_state())


def spoil(folder):
    """Cuts every file of a checkpoint in half."""
    for path in folder.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            path.write_bytes(data[: len(data) // 2])


def test_a_spoilt_checkpoint_is_named_and_the_one_before_is_used(
    opened, tmp_path, capsys
):
    """A half-written file is no end: the run goes on from the last whole one."""
    checkpoints = opened()
    for step in (1, 2):
        checkpoints.save(a_state(seed=step), step, {"step": step})
    checkpoints.close()
    spoil(tmp_path / "checkpoints" / "2")
    checkpoints = opened()
    found, extra = checkpoints.restore(like=a_state())
    assert_equal(found, a_state(seed=1))
    assert extra == {"step": 1}
    assert checkpoints.latest == 1
    assert "step 2 cannot be read" in capsys.readouterr().out
    # The number is free again.
    checkpoints.save(a_state(seed=5), 2, {"step": 2})
    found, _ = checkpoints.restore(like=a_state())
    assert_equal(found, a_state(seed=5))


@pytest.mark.parametrize("part", ["state", "extra"])
def test_one_changed_bit_is_noticed(opened, tmp_path, capsys, part):
    """Orbax reads it as if nothing had been; the checksums tell."""
    checkpoints = opened()
    for step in (1, 2):
        checkpoints.save(a_state(seed=step), step, {"count": 6})
    checkpoints.close()
    files = (tmp_path / "checkpoints" / "2" / part).rglob("*")
    largest = max((p for p in files if p.is_file()), key=lambda p: p.stat().st_size)
    data = bytearray(largest.read_bytes())
    place = data.index(b"6") if part == "extra" else len(data) // 2
    data[place] ^= 1
    largest.write_bytes(data)
    checkpoints = opened()
    found, extra = checkpoints.restore(like=a_state())
    assert_equal(found, a_state(seed=1))
    assert extra == {"count": 6}
    printed = capsys.readouterr().out
    assert "step 2 cannot be read (" in printed
    assert "is not as it was saved: its checksum differs" in printed


def test_where_none_can_be_read_none_is_moved(opened, tmp_path):
    """All may be whole, and the fault another: each is named with its reason."""
    checkpoints = opened()
    for step in (1, 2):
        checkpoints.save(a_state(seed=step), step, {})
    checkpoints.close()
    spoil(tmp_path / "checkpoints" / "2")
    (tmp_path / "checkpoints" / "1" / "extra").rename(tmp_path / "extra")
    checkpoints = opened()
    for _ in range(2):  # it stays an error: no run begins again from step 0
        with pytest.raises(ValueError, match=r"step 2: .*\n  step 1: .*\nNothing was"):
            checkpoints.restore(like=a_state())
    assert not (tmp_path / "spoilt_checkpoints").exists()
    (tmp_path / "extra").rename(tmp_path / "checkpoints" / "1" / "extra")
    assert_equal(checkpoints.restore(like=a_state())[0], a_state(seed=1))
    assert checkpoints.latest == 1


def test_too_little_memory_costs_no_checkpoint(opened, tmp_path, monkeypatch):
    """A mesh that is too small fails at each; on the old one all are still there."""
    checkpoints = opened()
    for step in (1, 2):
        checkpoints.save(a_state(seed=step), step, {})
    checkpoints.close()
    checkpoints = opened()

    def out_of_memory(*_):
        raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory")

    with monkeypatch.context() as patch:
        patch.setattr(checkpoints, "_read", out_of_memory)
        with pytest.raises(ValueError, match="RESOURCE_EXHAUSTED"):
            checkpoints.restore(like=a_state())
    assert_equal(checkpoints.restore(like=a_state())[0], a_state(seed=2))


PAIR = """
import pathlib, sys
import jax, numpy as np
from rlvr_jax.config import CheckpointConfig
from rlvr_jax.mesh.mesh import make_mesh, put
from rlvr_jax.train.checkpoint import Checkpoints
from tests.train.test_checkpoint import a_state, spoil

folder, port, index, fault = pathlib.Path(sys.argv[1]), *sys.argv[2:]
index = int(index)
jax.distributed.initialize(f"127.0.0.1:{port}", 2, index)
mesh = make_mesh((2, 1, 1))
def placed(seed):
    whole = lambda leaf: put(np.asarray(leaf), mesh, jax.sharding.PartitionSpec())
    return jax.tree.map(whole, a_state(seed=seed))
checkpoints = Checkpoints(folder / "checkpoints", CheckpointConfig(keep=2))
for step in (1, 2):
    checkpoints.save(placed(step), step, {"step": step})
checkpoints._manager.wait_until_finished()
if fault == "both" and index == 0:
    spoil(folder / "checkpoints" / "2")
jax.experimental.multihost_utils.sync_global_devices("spoilt")
read = checkpoints._read
def broken(step, wanted):
    if step == 2:
        raise OSError(5, "Input/output error")
    return read(step, wanted)
if fault == "one" and index == 1:
    checkpoints._read = broken
print("restored", checkpoints.restore(like=placed(0))[1], checkpoints.latest)
checkpoints.close()
"""


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["one", "both"])
def test_two_processes_take_the_same_checkpoint(tmp_path, fault):
    """Also where one of them alone cannot read the newest: neither waits in vain."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    words = [sys.executable, "-c", PAIR, str(tmp_path), port]
    environment = os.environ | {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": ""}
    pair = [
        subprocess.Popen(
            [*words, str(index), fault],
            env=environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        for index in range(2)
    ]
    printed = [process.communicate(timeout=120)[0] for process in pair]
    for text in printed:
        assert "restored {'step': 1} 1" in text, text
    assert "step 2 cannot be read" in printed[0]
    assert [p.name for p in (tmp_path / "spoilt_checkpoints").iterdir()] == ["2-0"]


def test_the_best_and_every_so_many_stay(opened, tmp_path):
    """Besides the newest: the highest score, and multiples of 4."""
    checkpoints = opened(
        settings=CheckpointConfig(keep=1, keep_best=1, keep_every_steps=4)
    )
    for step in range(1, 8):
        if (score := {2: 0.9, 3: 0.5, 5: 0.7}.get(step)) is not None:
            checkpoints.best.note(step, score)
        checkpoints.save(a_state(seed=step), step, {})
    checkpoints.close()
    kept = {path.name for path in (tmp_path / "checkpoints").iterdir()}
    assert kept == {"2", "4", "7"}


def test_one_too_many_is_dropped_where_a_run_goes_on(opened, tmp_path):
    """As a kill leaves it between the last save and the deletion of the oldest."""
    checkpoints = opened(settings=CheckpointConfig(keep=6))
    for step in range(1, 7):
        checkpoints.save(a_state(seed=step), step, {})
    checkpoints.close()
    checkpoints = opened(
        settings=CheckpointConfig(keep=2, keep_best=1, keep_every_steps=4)
    )
    checkpoints.best.note(2, 0.9)
    checkpoints.drop_superseded()
    kept = {path.name for path in (tmp_path / "checkpoints").iterdir()}
    assert kept == {"2", "4", "5", "6"}
    assert_equal(checkpoints.restore(like=a_state())[0], a_state(seed=6))


@pytest.mark.parametrize(("later", "stays"), [(0.7, "4"), (0.6, "2")])
def test_what_was_evaluated_after_it_was_saved_is_a_candidate(
    opened, tmp_path, later, stays
):
    """As at the end of a run that then goes on for more steps, in a new process."""
    settings = CheckpointConfig(keep=1, keep_best=1)
    checkpoints = opened(settings=settings)
    checkpoints.best.note(1, 0.5)
    checkpoints.save(a_state(seed=1), 1, {})
    checkpoints.save(a_state(seed=2), 2, {})
    checkpoints.best.note(2, 0.7)
    checkpoints.close()
    checkpoints = opened(settings=settings)
    for step in (3, 4):
        checkpoints.save(a_state(seed=step), step, {})
    checkpoints.best.note(4, later)
    checkpoints.save(a_state(seed=5), 5, {})
    checkpoints.close()
    # Of equal scores the newer; 2 had stayed until then.
    kept = {path.name for path in (tmp_path / "checkpoints").iterdir()}
    assert kept == {stays, "5"}


def test_a_disk_that_is_full_leaves_the_last_checkpoint(opened, monkeypatch):
    """The error says what is whole and what to do; nothing before it is lost."""
    checkpoints = opened()
    checkpoints.save(a_state(seed=1), 1, {"step": 1})
    checkpoints._manager.wait_until_finished()

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(checkpoints._manager, "save", full)
        with pytest.raises(OSError, match=r"No space left.*step 1.* is whole"):
            checkpoints.save(a_state(seed=2), 2, {"step": 2})
    found, _ = checkpoints.restore(like=a_state())
    assert_equal(found, a_state(seed=1))
