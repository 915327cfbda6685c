"""Rows from a bucket, which is a stand-in in memory here: there is no network."""

import gzip
import pathlib
from typing import ClassVar

import pytest
from fsspec.implementations.memory import MemoryFileSystem
from fsspec.registry import _registry, known_implementations

from rlvr_jax.config import Config, DataConfig
from rlvr_jax.data.places import is_uri, place_of
from rlvr_jax.data.sources import read_source, split_sources
from rlvr_jax.validate import ConfigError, validate

ROW = '{"question": "1 + 1 =", "answer": "2"}\n'


class Bucket(MemoryFileSystem):
    """Google's file system, without Google."""

    protocol = ("gs", "gcs")
    store: ClassVar[dict] = {}
    pseudo_dirs: ClassVar[list] = [""]


@pytest.fixture
def bucket(monkeypatch):
    """Puts files where gs://bucket/ is."""
    for name in Bucket.protocol:
        monkeypatch.setitem(_registry, name, Bucket)
    Bucket.store.clear()
    files = Bucket()

    def put(name: str, content: bytes) -> str:
        files.pipe(f"gs://bucket/{name}", content)
        return f"gs://bucket/{name}"

    return put


def test_what_is_in_a_bucket():
    assert is_uri("gs://bucket/rows.jsonl")
    assert not is_uri("packaged:gsm8k")
    assert not is_uri("/data/gs:/rows.jsonl")
    assert place_of("~/x") == pathlib.Path.home() / "x"
    assert split_sources("gs://b/a.jsonl, packaged:gsm8k") == [
        "gs://b/a.jsonl",
        "packaged:gsm8k",
    ]


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.jsonl.gz"])
def test_rows_are_read_from_a_bucket(bucket, name):
    content = (ROW * 3).encode()
    place = bucket(name, gzip.compress(content) if name.endswith("gz") else content)
    problems = read_source(place, DataConfig(), 0).problems
    assert [problem.answer for problem in problems] == ["2"] * 3
    first_two = read_source(f"{place}[:2]", DataConfig(), 0).problems
    assert len(first_two) == 2


def test_a_file_cut_off_in_a_bucket_is_named(bucket):
    place = bucket("rows.jsonl.gz", gzip.compress(ROW.encode() * 99)[:-9])
    with pytest.raises(ValueError, match=r"gs://bucket/rows\.jsonl\.gz, after line"):
        read_source(place, DataConfig(), 0)


def test_a_file_that_is_not_there(bucket):
    place = bucket("rows.jsonl", ROW.encode())
    with pytest.raises(FileNotFoundError, match="there is no file gs://bucket/other"):
        read_source(place.replace("rows", "other"), DataConfig(), 0)


def test_a_bucket_without_the_package_for_it_says_which(monkeypatch):
    absent = {"class": "absent.FileSystem", "err": "Install s3fs to access S3"}
    monkeypatch.setitem(known_implementations, "s3", absent)
    with pytest.raises(ValueError, match=r"in a bucket.*Install s3fs"):
        read_source("s3://bucket/rows.jsonl", DataConfig(), 0)


@pytest.mark.parametrize("name", ["run_dir", "model.path"])
def test_folders_refuse_buckets(name):
    config = Config()
    section = config.model if name == "model.path" else config
    setattr(section, name.rpartition(".")[2], "gs://bucket/folder")
    with pytest.raises(ConfigError, match=f"{name}='gs://bucket/folder' must be"):
        validate(config)
