"""Text to token ids and back, for all three places a tokenizer comes from.

    ""            characters (char_tokenizer.py), for a new small decoder
    DIRECTORY     a Hugging Face model directory (hf_tokenizer.py)
    FILE.gguf     a GGUF file's metadata (gguf_tokenizer.py)

Special tokens in a question: "<|im_end|>" written by a user must not end the user's
turn. `encode_chat` and `encode_prompt` therefore spell such text out as ordinary
characters. Text without special tokens gets the same ids as from transformers.
"""

import dataclasses
import functools
import json
import os
import pathlib
import re
from collections.abc import Iterable, Sequence
from typing import Any

import tokenizers

from rlvr_jax.data import chat_template
from rlvr_jax.data.chat_template import Messages
from rlvr_jax.errors import UserError

# Of Unicode's private use area: around the number of a special token in a question.
_MARK_OPEN, _MARK_CLOSE = "\ue0f0", "\ue0f1"
_MARK = re.compile(f"{_MARK_OPEN}(\\d+){_MARK_CLOSE}")
_LONE_MARK = re.compile(f"[{_MARK_OPEN}{_MARK_CLOSE}]")


@dataclasses.dataclass(frozen=True, eq=False)
class Tokenizer:
    """A vocabulary, its end tokens and its chat template."""

    backend: tokenizers.Tokenizer
    eos_ids: tuple[int, ...]
    """Any of them ends a completion; the first is the one to train on as the end."""
    pad_id: int
    """May be any token, also an end token; masks come from lengths."""
    template: str | None
    """Jinja source, or None: the model has no chat form."""
    template_variables: dict[str, str] = dataclasses.field(default_factory=dict)
    """What the template reads beside the messages, as bos_token."""

    @functools.cached_property
    def vocab_size(self) -> int:
        """One more than the highest id; the model may have more rows than that."""
        return max(self.backend.get_vocab().values()) + 1

    def encode(self, text: str) -> list[int]:
        """Ids of a text whose special tokens count as such; nothing is added.

        The form for text of our own: rendered chats, stop texts, worked solutions.
        """
        return self._encode(self.backend, text)

    def encode_prompt(self, text: str) -> list[int]:
        """Ids of a raw prompt: begins with bos where the model wants one, and no text
        in it becomes a special token."""
        return [*self._prefix, *self._encode(self._plain_backend, text)]

    def encode_chat(
        self, messages: Messages, *, add_generation_prompt: bool = True
    ) -> list[int]:
        """Ids of messages in the chat template; no content becomes a special token.

        Raises:
          UserError: there is no template, or it refuses the messages.
        """
        marked = [self._mark_special(message) for message in messages]
        text = self.apply_chat(marked, add_generation_prompt=add_generation_prompt)
        if all(
            dict(before) == after
            for before, after in zip(messages, marked, strict=True)
        ):
            return self.encode(text)
        ids: list[int] = []
        # Odd pieces are numbers of special tokens, found in what a user wrote.
        for i, piece in enumerate(_MARK.split(text)):
            if i % 2:
                spelled = self._special_texts[int(piece)]
                ids += self._encode(self._plain_backend, spelled)
            else:
                ids += self.encode(_LONE_MARK.sub("", piece))
        return ids

    def apply_chat(self, messages: Messages, add_generation_prompt: bool = True) -> str:
        """The messages as one text, to read. `encode_chat` makes the ids.

        Args:
          messages: {"role": "system" | "user" | "assistant", "content": text}.
          add_generation_prompt: also open the assistant's turn.

        Returns:
          The text that the template writes.

        Raises:
          UserError: there is no template, or it refuses the messages.
        """
        if self.template is None:
            raise UserError(
                "the model has no chat template; set data.template=raw, or save a "
                "chat_template.jinja in its directory"
            )
        return chat_template.render(
            self.template,
            messages,
            add_generation_prompt=add_generation_prompt,
            variables=self.template_variables,
        )

    def decode(self, ids: Iterable[int], *, keep_special: bool = False) -> str:
        """The text of ids.

        Args:
          ids: token ids; those without a token are left out.
          keep_special: spell out special tokens, as <|im_end|>, too.

        Returns:
          The text. Bytes that are no UTF-8, as half a character, become U+FFFD.
        """
        return self.backend.decode(
            [int(i) for i in ids], skip_special_tokens=not keep_special
        )

    def save(self, directory: str | os.PathLike[str]) -> None:
        """Writes tokenizer.json and its companions; `load_tokenizer` and transformers
        read them back."""
        folder = pathlib.Path(directory)
        folder.mkdir(parents=True, exist_ok=True)
        self.backend.save(os.fspath(folder / "tokenizer.json"))
        settings = {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "clean_up_tokenization_spaces": False,
            "eos_token": self.backend.id_to_token(self.eos_ids[0]),
            "pad_token": self.backend.id_to_token(self.pad_id),
        } | self.template_variables
        ends = {"eos_token_id": list(self.eos_ids), "pad_token_id": self.pad_id}
        _write_json(folder / "tokenizer_config.json", settings)
        _write_json(folder / "generation_config.json", ends)
        if self.template is not None:
            (folder / "chat_template.jinja").write_text(self.template, encoding="utf8")

    @functools.cached_property
    def _special_texts(self) -> list[str]:
        """Tokens that steer the model: the special ones, and those of the added ones
        that the template writes (<think> of Qwen3). Longest first, so that none is
        taken for a shorter one that it begins with."""
        added = self.backend.get_added_tokens_decoder().values()
        written = self.template or ""
        steering = {
            token.content
            for token in added
            if token.special or (token.content in written and token.content.strip())
        }
        return sorted(steering, key=lambda text: (-len(text), text))

    @functools.cached_property
    def _plain_backend(self) -> tokenizers.Tokenizer:
        """The same vocabulary without knowledge of its special tokens."""
        stored = json.loads(self.backend.to_str())
        stored["added_tokens"] = [
            token
            for token in stored["added_tokens"]
            if token["content"] not in self._special_texts
        ]
        return tokenizers.Tokenizer.from_str(json.dumps(stored))

    @functools.cached_property
    def _prefix(self) -> list[int]:
        """What the tokenizer puts before any text: bos or nothing."""
        bare = self.backend.encode("1", add_special_tokens=False).ids
        framed = self.backend.encode("1", add_special_tokens=True).ids
        return framed[: framed.index(bare[0])]

    def _mark_special(self, message: Any) -> dict[str, Any]:
        content = message.get("content")
        texts = self._special_texts
        if not isinstance(content, str) or not any(text in content for text in texts):
            return dict(message)
        pattern = "|".join(map(re.escape, texts))
        marked = re.sub(
            pattern,
            lambda m: f"{_MARK_OPEN}{texts.index(m[0])}{_MARK_CLOSE}",
            _LONE_MARK.sub("", content),
        )
        return dict(message) | {"content": marked}

    def _encode(self, backend: tokenizers.Tokenizer, text: str) -> list[int]:
        try:
            return backend.encode(text, add_special_tokens=False).ids
        except Exception as error:  # The library raises plain Exception.
            raise UserError(
                f"the tokenizer has no token for a character of {text[:80]!r} "
                f"({error}); a character tokenizer knows its alphabet only"
            ) from error


def load_tokenizer(path: str | os.PathLike[str]) -> Tokenizer:
    """Loads the tokenizer that belongs to `model.path`.

    Args:
      path: "" (characters), a Hugging Face model directory, or a .gguf file.

    Returns:
      The tokenizer.

    Raises:
      FileNotFoundError: there is no such file or directory.
      UserError: the files do not make a tokenizer; says which and why.
    """
    from rlvr_jax.data import char_tokenizer, gguf_tokenizer, hf_tokenizer

    if os.fspath(path) == "":
        return char_tokenizer.CharTokenizer()
    path = pathlib.Path(path).expanduser()
    if not path.exists():
        raise FileNotFoundError(
            f"there is no model {path} (looked from {pathlib.Path.cwd()}); correct "
            "model.path"
        )
    if path.is_dir():
        return hf_tokenizer.load(path)
    return gguf_tokenizer.load(path)


def stop_ids(tokenizer: Tokenizer, stops: Sequence[str]) -> tuple[int, ...]:
    """The end tokens of the model and of `rollout.stop` together.

    Raises:
      UserError: a stop is not exactly one token.
    """
    ids = list(tokenizer.eos_ids)
    for stop in stops:
        tokens = tokenizer.encode(stop)
        if len(tokens) != 1:
            raise UserError(
                f"rollout.stop: {stop!r} is {len(tokens)} tokens of this model, not "
                "one; choose a text that is a single token"
            )
        ids += tokens
    return tuple(dict.fromkeys(ids))


def _write_json(path: pathlib.Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", "utf8")
