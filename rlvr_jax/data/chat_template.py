"""Jinja chat templates, in the sandbox and with the extras that Hugging Face defines.

A template comes with a model, so it is somebody else's code: it runs in Jinja's
immutable sandbox. https://huggingface.co/docs/transformers/chat_templating
"""

import datetime
import functools
import json
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.parser
import jinja2.sandbox

from rlvr_jax.errors import UserError

_TODAY = datetime.datetime(2024, 7, 26)
"""For templates that write a date: what Llama 3.2's writes where there is no clock."""

Messages = Sequence[Mapping[str, Any]]


class _GenerationBlock(jinja2.ext.Extension):
    """{% generation %} ... {% endgeneration %}: marks the assistant's text for
    trainers that mask by it. We mask by lengths, so the block is its content."""

    tags = {"generation"}  # noqa: RUF012 (Jinja declares it so)

    def parse(self, parser: jinja2.parser.Parser) -> list[jinja2.nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def render(
    template: str,
    messages: Messages,
    *,
    add_generation_prompt: bool,
    variables: Mapping[str, Any],
) -> str:
    """Writes messages as one text, as transformers' `apply_chat_template` does.

    Args:
      template: Jinja source.
      messages: {"role": ..., "content": ...}, first to last.
      add_generation_prompt: also open the assistant's turn.
      variables: what else the template reads: bos_token, eos_token, enable_thinking.

    Returns:
      The text, special tokens spelled out.

    Raises:
      UserError: the template is not valid, or refuses the messages.
    """
    try:
        return _compiled(template).render(
            messages=messages,
            add_generation_prompt=add_generation_prompt,
            **{"tools": None, "documents": None} | dict(variables),
        )
    except jinja2.TemplateSyntaxError as error:
        raise UserError(
            f"the model's chat template is not valid: {error.message} on line "
            f"{error.lineno}; repair it, or set data.template=raw"
        ) from error
    except (jinja2.TemplateError, TypeError) as error:
        roles = ", ".join(str(message.get("role")) for message in messages)
        raise UserError(
            f"the model's chat template refuses messages of the roles {roles}: "
            f"{error}. A model without a system role needs data.system_prompt empty"
        ) from error


@functools.lru_cache(maxsize=16)
def _compiled(template: str) -> jinja2.Template:
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=[_GenerationBlock, jinja2.ext.loopcontrols],
    )
    environment.filters["tojson"] = _tojson
    environment.globals["raise_exception"] = _raise_exception
    environment.globals["strftime_now"] = _strftime_now
    return environment.from_string(template)


def _tojson(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """Jinja's own filter escapes <, > and & for HTML, which a prompt must not have."""
    return json.dumps(
        value,
        ensure_ascii=ensure_ascii,
        indent=indent,
        separators=separators,
        sort_keys=sort_keys,
    )


def _raise_exception(message: str) -> NoReturn:
    raise jinja2.TemplateError(message)


def _strftime_now(form: str) -> str:
    # Departs from transformers: a prompt that changed with the day of the run could
    # not be resumed exactly, nor a score be had again.
    return _TODAY.strftime(form)
