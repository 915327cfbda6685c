"""Threads of the CPU client for virtual devices."""

import pytest

from launch.virtual_devices import give_virtual_devices_threads


@pytest.mark.parametrize(
    ("before", "threads"),
    [
        ({"XLA_FLAGS": "--a --xla_force_host_platform_device_count=8 --b"}, "128"),
        ({"XLA_FLAGS": "--xla_force_host_platform_device_count=1"}, None),
        ({"XLA_FLAGS": ""}, None),
        ({}, None),
        (
            {"XLA_FLAGS": "--xla_force_host_platform_device_count=8", "NPROC": "5"},
            "5",
        ),
    ],
)
def test_several_virtual_devices_get_threads(before, threads):
    """Sixteen each, unless the user has chosen."""
    environment = dict(before)
    give_virtual_devices_threads(environment)
    assert environment.get("NPROC") == threads
