"""Names of slices."""

import pytest

from rlvr_jax.planning.chips import CHIPS, parse_topology


def test_a_name_is_a_generation_and_sizes():
    found = parse_topology("v6e:16x16")
    assert (found.chips, found.devices) == (256, 256)
    assert found.hbm_gib_per_device == 32
    # Two JAX devices per chip of tpu7x, each with half of its 192 GiB.
    found = parse_topology("tpu7x:4x4x4")
    assert (found.chips, found.devices) == (64, 128)
    assert found.hbm_gib_per_device == 96


@pytest.mark.parametrize("name", ["v4:2x2", "v5p", "v5p:4xx4", "v5p:four"])
def test_other_names_are_refused(name):
    with pytest.raises(ValueError, match="v5e, v5p, v6e, tpu7x"):
        parse_topology(name)


def test_peaks_are_those_of_the_vendor():
    """Cloud TPU documentation, "System architecture": TFLOPs bf16, GiB, GB/s."""
    listed = {"v5e": (197, 16, 819), "v5p": (459, 95, 2765), "v6e": (918, 32, 1638)}
    for name, (tflops, gib, gigabytes) in listed.items():
        chip = CHIPS[name]
        assert chip.bf16_flops == tflops * 1e12
        assert chip.hbm_gib == gib
        assert chip.hbm_bytes_per_s == gigabytes * 1e9
