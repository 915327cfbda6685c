"""Where in a completion the answer stands: boxes, tags, #### and the last line."""

import dataclasses
import re

_BOX = re.compile(r"\\f?boxed\s*\{|\\fbox\s*\{")
_TAG = re.compile(r"<answer>(.*?)</answer>", re.DOTALL)
_HASHES = re.compile(r"^\s*####[ \t]*(.+?)\s*$", re.MULTILINE)
_TEXT_WRAPPER = re.compile(
    r"\\(?:text|textbf|textit|textrm|mathrm|mathbf|mbox|textnormal)\s*\{([^{}]*)\}"
)


@dataclasses.dataclass(frozen=True)
class Box:
    """A box and where it stands: `start` at the backslash, `end` after the brace."""

    text: str
    start: int
    end: int


def boxes(text: str) -> list[Box]:
    r"""The outermost \boxed{...} and \fbox{...}, with balanced braces, in order.

    Example:
      >>> [box.text for box in boxes(r"\boxed{\frac{1}{2}} or \fbox{3}")]
      ['\\frac{1}{2}', '3']
    """
    found = []
    position = 0
    while match := _BOX.search(text, position):
        end = closing_brace(text, match.end())
        if end is None:
            position = match.end()
            continue
        found.append(Box(text[match.end() : end], match.start(), end + 1))
        position = end + 1
    return found


def closing_brace(text: str, start: int) -> int | None:
    """Where the brace opened just before `start` closes; None if it never does."""
    depth = 1
    for match in re.compile(r"\\.|[{}]", re.DOTALL).finditer(text, start):
        if match[0] == "{":
            depth += 1
        elif match[0] == "}":
            depth -= 1
            if depth == 0:
                return match.start()
    return None


def marked_answers(text: str) -> list[str]:
    """Answers that the completion marks as such: tags, else boxes, else #### lines."""
    if tags := _TAG.findall(text):
        return [tag.strip() for tag in tags]
    if found := boxes(text):
        return [box.text.strip() for box in found]
    return _HASHES.findall(text)[-1:]


def last_line(text: str) -> str:
    """The last line that is not blank; "" if there is none."""
    return text.strip().rpartition("\n")[2].strip()


def without_text_wrapper(text: str) -> str:
    r"""Takes \text{...} and its like away, leaving what they hold."""
    return _TEXT_WRAPPER.sub(r"\1", text)
