"""Where a file is: on a disk of this machine, or in a bucket."""

import pathlib
import re
from typing import Any

_URI = re.compile(r"^(gs|s3|az)://")


def is_uri(text: str) -> bool:
    """Whether it names a bucket."""
    return _URI.match(text) is not None


def place_of(text: str) -> Any:
    """A path to read from, with the methods of `pathlib.Path`.

    Buckets (gs://, s3://, az://) are opened through etils.epath, which needs gcsfs,
    s3fs or adlfs. "~" is expanded on disks.
    """
    if not is_uri(text):
        return pathlib.Path(text).expanduser()
    # Slow to import, and needed for buckets only.
    from etils import epath

    return epath.Path(text)
