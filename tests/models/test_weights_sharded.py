"""Loading onto several devices and hosts equals loading onto one."""

import socket
import subprocess
import sys

import jax
import pytest
from flax import nnx

from rlvr_jax.models.architecture import Architecture
from rlvr_jax.models.decoder import Decoder
from rlvr_jax.models.parameters import parameter_shapes
from rlvr_jax.models.weights import load_decoder, parameters_of, save_decoder

ARCH = Architecture(
    vocab_size=32,
    hidden_size=16,
    intermediate_size=24,
    num_layers=3,
    num_heads=4,
    num_kv_heads=2,
    head_dim=4,
    tie_embeddings=False,
)


@pytest.fixture
def directory(tmp_path):
    save_decoder(Decoder(ARCH, rngs=nnx.Rngs(0)), tmp_path / "model")
    return tmp_path / "model"


SHARDED = """
import sys
import jax, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
from rlvr_jax.models.parameters import parameter_shapes
from rlvr_jax.models import hf_weights
from rlvr_jax.models.weights import load_decoder, parameters_of, save_decoder

source, copy = sys.argv[1:]
read, largest = hf_weights.SafetensorsDirectory.read, 0
def watched(self, name, index):
    global largest
    part = read(self, name, index)
    if "q_proj" in name:
        largest = max(largest, part.size)
    return part

plain = load_decoder(source)
hf_weights.SafetensorsDirectory.read = watched
mesh = jax.make_mesh(
    (2, 2, 2), ("data", "fsdp", "tensor"), axis_types=(jax.sharding.AxisType.Auto,) * 3
)
def rule(name, shape):
    if len(shape) == 3:
        return P(None, "fsdp", "tensor")
    return P("tensor", "fsdp") if name in ("embedding", "head") else P()
shardings = {
    name: NamedSharding(mesh, rule(name, shape))
    for name, shape in parameter_shapes(plain.architecture).items()
}
sharded = load_decoder(source, shardings=shardings)
found = parameters_of(sharded)
for name, expected in parameters_of(plain).items():
    assert found[name].sharding == shardings[name], name
    np.testing.assert_array_equal(found[name], expected, name)
assert largest == 16 * 16 // 4, largest
save_decoder(sharded, copy)
print(len(jax.devices()), "devices agree")
"""


def test_sharded_loading_equals_plain_loading(directory, tmp_path):
    """Eight devices; each reads a quarter of a matrix, and saving gathers them."""
    done = subprocess.run(
        [sys.executable, "-c", SHARDED, str(directory), str(tmp_path / "copy")],
        env={
            "XLA_FLAGS": "--xla_force_host_platform_device_count=8",
            "JAX_PLATFORMS": "cpu",
            "PATH": "",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "8 devices agree\n", done.stderr
    name = "model.safetensors"
    assert (tmp_path / "copy" / name).read_bytes() == (directory / name).read_bytes()


def test_sharding_on_one_device_is_used(directory):
    here = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    shardings = dict.fromkeys(parameter_shapes(ARCH), here)
    loaded = load_decoder(directory, shardings=shardings)
    assert parameters_of(loaded)["layers.query"].sharding == here


TWO_PROCESSES = """
import sys
import jax
source, copy, port, process = sys.argv[1:]
jax.config.update("jax_cpu_collectives_implementation", "gloo")
jax.distributed.initialize(f"127.0.0.1:{port}", 2, int(process))
from jax.sharding import NamedSharding, PartitionSpec as P
from rlvr_jax.models.parameters import parameter_shapes
from rlvr_jax.models.weights import load_decoder, open_checkpoint, save_decoder

mesh = jax.make_mesh((4,), ("fsdp",), axis_types=(jax.sharding.AxisType.Auto,))
shardings = {
    name: NamedSharding(mesh, P(None, "fsdp") if len(shape) == 3 else P())
    for name, shape in parameter_shapes(open_checkpoint(source).architecture).items()
}
decoder = load_decoder(source, shardings=shardings)
assert not decoder.layers["query"][...].is_fully_addressable
save_decoder(decoder, copy)
print(len(jax.devices()), "devices")
"""


@pytest.mark.slow
def test_two_processes_save_what_they_loaded(directory, tmp_path):
    """Two hosts of two devices; the first one writes, the second only gathers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    copies = [tmp_path / f"copy{i}" for i in range(2)]
    runs = [
        subprocess.Popen(
            [
                *(sys.executable, "-c", TWO_PROCESSES),
                *(str(directory), str(copies[i]), port, str(i)),
            ],
            env={
                "XLA_FLAGS": "--xla_force_host_platform_device_count=2",
                "JAX_PLATFORMS": "cpu",
                "PATH": "",
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for i in range(2)
    ]
    for out, error in [run.communicate(timeout=120) for run in runs]:
        assert out.endswith("4 devices\n"), error
    name = "model.safetensors"
    assert (copies[0] / name).read_bytes() == (directory / name).read_bytes()
    assert not copies[1].exists()
