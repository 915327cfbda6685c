"""Metadata of rlvr_jax; tool settings live in pyproject.toml."""

import pathlib

import setuptools

HERE = pathlib.Path(__file__).parent

setuptools.setup(
    name="rlvr_jax",
    version="0.1.0",
    description="Reinforcement learning with verifiable rewards in JAX/Flax",
    long_description=(HERE / "README.md").read_text(encoding="utf8"),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    python_requires=">=3.11",
    packages=setuptools.find_packages(include=["rlvr_jax", "rlvr_jax.*", "launch"]),
    package_data={"rlvr_jax": ["data/packaged/*", "py.typed"]},
    install_requires=[
        "absl-py>=2.1",
        "datasets>=3.0",
        "flax>=0.12.4,<0.13",
        "gguf>=0.17",
        "jax>=0.10.0,<0.11",
        "jaxtyping>=0.3",
        "jinja2>=3.1",
        "matplotlib>=3.8",
        "ml_collections>=1.1",
        "langdetect>=1.0.9",
        "mpmath>=1.3",
        "numpy>=2.0",
        "optax>=0.2.6",
        "orbax-checkpoint>=0.11.30",
        "rich>=13.7",
        "safetensors>=0.5",
        "scipy>=1.13",
        "tensorboardX>=2.6.2",
        "tokenizers>=0.21",
    ],
    extras_require={
        "test": [
            "beartype>=0.20",
            "chex>=0.1.88",
            "pyright>=1.1.400",
            "pytest>=8.3",
            "pytest-timeout>=2.3",
            "pytest-xdist>=3.6",
            "ruff>=0.12",
            # Only to compare with: the models' logits are checked against transformers.
            "torch==2.13.0",
            "transformers>=5.0",
        ],
        "gym": ["reasoning-gym>=0.1.20"],
        "tpu": ["jax[tpu]>=0.10.0,<0.11"],
        "cuda": ["jax[cuda13]>=0.10.0,<0.11"],
    },
)
