"""Collectives of programs whose traffic is known."""

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec

from rlvr_jax.mesh.mesh import make_mesh
from rlvr_jax.planning.collectives import collectives_of


def compiled_text(function, spec, out, shape):
    mesh = make_mesh((8, 1, 1))
    given = jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(mesh, spec))
    run = jax.jit(function, out_shardings=NamedSharding(mesh, out))
    return run.lower(given).compile().as_text()


def test_one_sum_over_devices():
    """[8, 100] split by rows, summed over rows: 100 floats on every device."""
    text = compiled_text(
        lambda x: x.sum(axis=0), PartitionSpec("data"), PartitionSpec(), (8, 100)
    )
    found = collectives_of(text)
    assert found.bytes_by_kind == {"all-reduce": 400}
    assert found.unknown_loops == 0


def test_a_gather_in_a_loop_counts_every_time():
    """A loop of seven gathers of [8, 64] floats."""
    mesh = make_mesh((8, 1, 1))
    split, whole = (
        NamedSharding(mesh, spec) for spec in (PartitionSpec("data"), PartitionSpec())
    )

    def step(_, x):
        constrain = jax.lax.with_sharding_constraint
        return constrain(jnp.sin(constrain(jnp.cos(x), whole)), split)

    text = compiled_text(
        lambda x: jax.lax.fori_loop(0, 7, step, x),
        PartitionSpec("data"),
        PartitionSpec("data"),
        (8, 64),
    )
    found = collectives_of(text)
    assert found.bytes_by_kind == {"all-gather": 7 * 8 * 64 * 4}


TPU_LIKE = """
HloModule jit_step

%body (p: (s32[], bf16[16,128])) -> (s32[], bf16[16,128]) {
  %ag = (bf16[2,128]{1,0}, bf16[16,128]{1,0}) all-gather-start(bf16[2,128]{1,0} %x), \
dimensions={0}
  %done = bf16[16,128]{1,0} all-gather-done(%ag)
}

%cond (p: (s32[], bf16[16,128])) -> pred[] {
  %c = pred[] compare(%a, %b), direction=LT
}

ENTRY %main (a: f32[4]) -> f32[4] {
  %w = (s32[], bf16[16,128]) while(%t), condition=%cond, body=%body
  %v = (s32[], bf16[16,128]) while(%t), condition=%cond, body=%body, \
backend_config={"known_trip_count":{"n":"3"}}
  ROOT %r = f32[4]{0} all-reduce(f32[4]{0} %a), to_apply=%sum
}
"""


def test_started_collectives_and_loops_of_unknown_length():
    """Of (operand, result) the result counts; a loop without a count runs once."""
    found = collectives_of(TPU_LIKE)
    gathered = 16 * 128 * 2
    assert found.bytes_by_kind == {"all-gather": 4 * gathered, "all-reduce": 16}
    assert found.unknown_loops == 1
    assert found.total == 4 * gathered + 16


def test_a_loop_counts_to_the_number_that_its_counter_is_compared_with():
    """As libtpu writes conditions; a loop with another end, too, runs no longer."""
    condition = """%cond (p: (s32[], pred[])) -> pred[] {
  %all = pred[]{:T(512)} constant(true)
  %limit.3 = s32[]{:T(128)} constant(6)
  %at = s32[]{:T(128)} get-tuple-element(%p), index=0
  %lt.1 = pred[]{:T(512)} compare(%at, %limit.3), direction=LT, metadata={op_name="lt"}
  ROOT %and = pred[] and(%lt.1, %not.2)
}"""
    begin, end = TPU_LIKE.index("%cond (p"), TPU_LIKE.index("ENTRY")
    found = collectives_of(f"{TPU_LIKE[:begin]}{condition}\n\n{TPU_LIKE[end:]}")
    # Of the two loops one says itself that it runs three times.
    gathered = (6 + 3) * 16 * 128 * 2
    assert found.bytes_by_kind == {"all-gather": gathered, "all-reduce": 16}
    assert found.unknown_loops == 0
