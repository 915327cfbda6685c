"""The tokenizer of a Hugging Face model directory, without transformers."""

import json
import pathlib
from typing import Any

import tokenizers

from rlvr_jax.data.tokenizer import Tokenizer
from rlvr_jax.errors import UserError


def load(folder: pathlib.Path) -> Tokenizer:
    """Reads tokenizer.json and, where they exist, its companions.

    End tokens are all that generation_config.json and config.json name, after the
    tokenizer's own; the template comes from chat_template.jinja, else from
    tokenizer_config.json (of several named ones, "default").

    Args:
      folder: a model directory.

    Returns:
      The tokenizer.

    Raises:
      FileNotFoundError: there is no tokenizer.json.
      UserError: a file is damaged, or no file names an end token.
    """
    path = folder / "tokenizer.json"
    if not path.is_file():
        raise FileNotFoundError(
            f"{folder} has no tokenizer.json. Older models: save it once with "
            "transformers.AutoTokenizer.from_pretrained(DIR).save_pretrained(DIR); "
            "or correct model.path"
        )
    try:
        backend = tokenizers.Tokenizer.from_file(str(path))
    except Exception as error:  # The library raises plain Exception.
        raise UserError(f"{path}: is not a tokenizer ({error})") from error
    settings = _read_json(folder / "special_tokens_map.json")
    settings |= _read_json(folder / "tokenizer_config.json")
    named = _named_tokens(settings)
    # As transformers does: a token with a role is special, also where tokenizer.json
    # says otherwise.
    roles = dict.fromkeys(named.values())
    backend.add_special_tokens([t for t in roles if backend.token_to_id(t) is not None])
    eos_ids = _eos_ids(folder, backend, named.get("eos_token"))
    pad_id = backend.token_to_id(named.get("pad_token", ""))
    return Tokenizer(
        backend,
        eos_ids=eos_ids,
        pad_id=eos_ids[0] if pad_id is None else pad_id,
        template=_template(folder, settings),
        template_variables=named,
    )


def _eos_ids(
    folder: pathlib.Path, backend: tokenizers.Tokenizer, eos_token: str | None
) -> tuple[int, ...]:
    found = [] if eos_token is None else [backend.token_to_id(eos_token)]
    for name in ("generation_config.json", "config.json"):
        ids = _read_json(folder / name).get("eos_token_id")
        found += ids if isinstance(ids, list) else [ids]
    ids = tuple(dict.fromkeys(i for i in found if i is not None))
    if not ids:
        raise UserError(
            f"{folder}: no file names an end token; add eos_token to "
            "tokenizer_config.json or eos_token_id to generation_config.json"
        )
    return ids


def _template(folder: pathlib.Path, settings: dict[str, Any]) -> str | None:
    path = folder / "chat_template.jinja"
    if path.is_file():
        return path.read_text(encoding="utf8")
    template = settings.get("chat_template")
    if isinstance(template, list):
        named = {entry["name"]: entry["template"] for entry in template}
        return named.get("default")
    return template


def _named_tokens(settings: dict[str, Any]) -> dict[str, str]:
    """bos_token, eos_token, ...: each is text, or an object with its text inside."""
    extra = settings.get("extra_special_tokens")
    entries = settings | extra if isinstance(extra, dict) else settings
    named = {
        name: token.get("content") if isinstance(token, dict) else token
        for name, token in entries.items()
        if name.endswith("_token")
    }
    return {name: text for name, text in named.items() if isinstance(text, str)}


def _read_json(path: pathlib.Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        value = json.loads(path.read_text(encoding="utf8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: is not JSON ({error})") from None
    if not isinstance(value, dict):
        raise UserError(f"{path}: needs a JSON object, got {type(value).__name__}")
    return value
