"""Prompts as arrays of one shape: padding, slots, and where the rows lie."""

import jax
import numpy as np
import pytest
from jax.sharding import PartitionSpec

from rlvr_jax.mesh.mesh import ROW_AXES, make_mesh
from rlvr_jax.train.batches import (
    PromptBatches,
    left_padded,
    right_padded,
    slots_for,
)

ROWS = [[5, 6, 7], [8], []]


def batches(shape=(1, 1, 1), size=4, num_generations=2):
    mesh = make_mesh(shape, jax.devices()[: int(np.prod(shape))])
    tokens = [[3], [4, 5], [6, 7, 8], [9, 9], [2]]
    return PromptBatches(tokens, size, 4, 0, num_generations, mesh)


def test_left_padding_ends_at_the_last_column():
    expected = [[9, 5, 6, 7], [9, 9, 9, 8], [9, 9, 9, 9]]
    found = left_padded(ROWS, 4, pad_id=9)
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == np.int32


def test_right_padding_starts_at_the_first_column():
    expected = [[5, 6, 7, 9], [8, 9, 9, 9], [9, 9, 9, 9]]
    found = right_padded(ROWS, 4, pad_id=9)
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == np.int32


@pytest.mark.parametrize("padded", [left_padded, right_padded])
def test_a_row_that_is_too_long_is_an_error_and_never_cut(padded):
    with pytest.raises(ValueError, match="broadcast"):
        padded([[1, 2, 3, 4, 5]], 4, 0)


@pytest.mark.parametrize(
    ("groups", "multiple", "slots"),
    [
        (([[1] * 8],), 8, 8),
        (([[1] * 9], [[1]]), 8, 16),
        (([[1]], [[1] * 17]), 8, 24),
        (([[1] * 5],), 4, 8),
        (([], []), 8, 8),
        ((), 8, 8),
    ],
)
def test_slots_hold_the_longest_row_rounded_up(groups, multiple, slots):
    assert slots_for(*groups, multiple=multiple) == slots


def test_arrays_are_the_prompts_asked_for():
    tokens, lengths = batches().arrays(np.array([2, 0, 2, 1]))
    expected = [[0, 6, 7, 8], [0, 0, 0, 3], [0, 6, 7, 8], [0, 0, 4, 5]]
    np.testing.assert_array_equal(tokens, expected)
    np.testing.assert_array_equal(lengths, [3, 1, 3, 2])
    assert (tokens.dtype, lengths.dtype) == (np.int32, np.int32)


def test_prompts_are_split_over_the_row_devices():
    tokens, lengths = batches((2, 2, 2)).arrays(np.arange(4))
    assert tokens.sharding.spec == PartitionSpec(ROW_AXES)
    assert {shard.data.shape for shard in tokens.addressable_shards} == {(1, 4)}
    assert {shard.data.shape for shard in lengths.addressable_shards} == {(1,)}
    np.testing.assert_array_equal(lengths, [1, 2, 3, 2])


def test_devices_that_share_a_prompt_hold_it_whole():
    """8 row devices do not divide 2 prompts but their 8 completions each; or 2 of them
    the prompts, and 4 the completions."""
    put = batches((1, 8, 1), size=2, num_generations=8).put(np.array([7, 8]))
    assert put.sharding.is_fully_replicated
    np.testing.assert_array_equal(put, [7, 8])
    put = batches((4, 2, 1), size=2, num_generations=8).put(np.array([7, 8]))
    assert [shard.data.shape for shard in put.addressable_shards] == [(1,)] * 8
    np.testing.assert_array_equal(put, [7, 8])


def test_rows_that_divide_nowhere_name_the_settings():
    with pytest.raises(ValueError, match=r"4 x 2 row devices .* batch\.prompts"):
        batches((4, 2, 1), size=3, num_generations=3).put(np.zeros(3))
