"""A sum that one changed bit changes, and that no mesh does."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding, PartitionSpec

from rlvr_jax.mesh.mesh import make_mesh
from rlvr_jax.train.checksums import check_sums, host_checksums, text_checksum


def by_hand(array) -> int:
    """The sum in whole numbers of any size, element by element."""
    array = np.asarray(array)
    bits = array.astype(np.uint8) if array.dtype == bool else array
    words = bits.reshape(-1).view(f"uint{8 * bits.dtype.itemsize}")
    return sum(int(w) * (2 * i + 1) for i, w in enumerate(words)) % 2**32


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32", "bool", "uint8"])
def test_the_sum_is_that_of_its_definition(dtype):
    drawn = jax.random.normal(jax.random.key(0), (3, 5, 4)) * 9
    arrays = {"cube": drawn.astype(dtype), "number": drawn[0, 0, 0].astype(dtype)}
    expected = {name: by_hand(array) for name, array in arrays.items()}
    assert host_checksums(arrays) == expected


def test_any_bit_of_any_element_shows():
    plain = np.arange(1, 9, dtype=np.float32).reshape(2, 4)
    spoilt = {}
    for element in range(8):
        for bit in range(32):
            words = plain.copy().view(np.uint32)
            words.reshape(-1)[element] ^= np.uint32(1 << bit)
            spoilt[f"{element} {bit}"] = jnp.asarray(words.view(np.float32))
    before = host_checksums({"plain": jnp.asarray(plain)})["plain"]
    assert before not in host_checksums(spoilt).values()


@pytest.mark.parametrize("spec", [("data",), ("fsdp", "tensor"), (None, "data")])
def test_a_split_array_has_the_same_sum(spec):
    array = jax.random.normal(jax.random.key(1), (8, 16))
    sharding = NamedSharding(make_mesh((2, 2, 2)), PartitionSpec(*spec))
    split = jax.device_put(array, sharding)
    assert host_checksums({"a": split}) == {"a": by_hand(array)}


def test_what_differs_is_named():
    check_sums({"a": 1}, {"a": 1, "b": 2})
    with pytest.raises(ValueError, match=r"^b is not as it was saved"):
        check_sums({"a": 1, "b": 3}, {"a": 1, "b": 2})


def test_json_values_have_a_sum_that_does_not_depend_on_their_order():
    assert text_checksum({"a": 1, "b": [0.1]}) == text_checksum({"b": [0.1], "a": 1})
    assert text_checksum({"a": 1}) != text_checksum({"a": 2})
