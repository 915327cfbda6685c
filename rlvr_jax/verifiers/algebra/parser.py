r"""Reads the text of an answer into a tree: recursive descent, no eval, no evaluation.

statement   group ; group ...                    list, groups
group       item , item and item or item ...
item        side = side <= side ...              rel, ratio
side        sum \cup sum ...
sum         term + term - term \pm term
term        factor * factor / factor, or side by side
factor      signs, base ^ exponent, postfix ! % ^\circ
"""

import re
from fractions import Fraction

from rlvr_jax.verifiers.algebra import lexer, tree
from rlvr_jax.verifiers.algebra.lexer import STOP, Token
from rlvr_jax.verifiers.algebra.tree import Node, ParseError, number
from rlvr_jax.verifiers.algebra.units import UNITS

_RELATIONS = {
    "=": "=",
    "<": "<",
    ">": ">",
    "\\lt": "<",
    "\\gt": ">",
    "\\le": "<=",
    "\\leq": "<=",
    "\\leqslant": "<=",
    "\\leqq": "<=",
    "\\ge": ">=",
    "\\geq": ">=",
    "\\geqslant": ">=",
    "\\geqq": ">=",
    "\\ne": "!=",
    "\\neq": "!=",
    "\\approx": "~",
    "\\sim": "~",
    "\\simeq": "~",
    "\\in": "in",
    ":": ":",
    "\\colon": ":",
    "\\equiv": "=",
}
_SET_SIGNS = {
    "\\cup": "cup",
    "\\bigcup": "cup",
    "\\cap": "cap",
    "\\setminus": "setminus",
    "\\backslash": "setminus",
}
_TIMES = frozenset(["*", "\\cdot", "\\times", "\\ast", "\\bullet", "\\cdotp"])
_OVER = frozenset(["/", "\\div"])
_CONSTANTS = {
    "\\infty": tree.INFINITY,
    "\\inf": tree.INFINITY,
    "\\infinity": tree.INFINITY,
    "\\oo": tree.INFINITY,
    "\\pi": Node("symbol", (), "pi"),
    "\\emptyset": Node("set"),
    "\\varnothing": Node("set"),
    "\\R": Node("symbol", (), "\\mathbb{R}"),
    "\\ldots": Node("symbol", (), "dots"),
    "\\dots": Node("symbol", (), "dots"),
    "\\cdots": Node("symbol", (), "dots"),
    "\\imath": Node("symbol", (), "i"),
}
_FRACTIONS = frozenset(["\\frac", "\\dfrac", "\\tfrac", "\\cfrac"])
_BINOMIALS = frozenset(["\\binom", "\\dbinom", "\\tbinom"])
_BOXES = frozenset(["\\boxed", "\\fbox", "\\mathop", "\\underline", "\\displaylines"])
_ACCENTS = frozenset(
    ["\\overline", "\\bar", "\\hat", "\\vec", "\\tilde", "\\overrightarrow", "\\mathbb",
     "\\mathcal", "\\mathfrak", "\\widehat"]
)  # fmt: skip
_INVERSE = {"sin": "asin", "cos": "acos", "tan": "atan", "sinh": "asinh"}
_ALIASES = {"arcsin": "asin", "arccos": "acos", "arctan": "atan"}
_CLOSERS = {"(": ")]", "[": ")]", "\\{": ["\\}"]}
_MATRICES = frozenset(
    ["matrix", "pmatrix", "bmatrix", "Bmatrix", "array", "smallmatrix"]
)
_APPLIED = frozenset("fghFGHPQ")
"""Letters that, before a parenthesis, are a function and not a factor."""
_UNREADABLE = frozenset(
    ["\\int", "\\iint", "\\oint", "\\sum", "\\prod", "\\lim", "\\Rightarrow",
     "\\implies", "\\iff", "\\to", "\\rightarrow", "\\bmod", "\\pmod", "\\mod",
     "\\begin", "\\end", "\\limsup", "\\bigcap", "\\ll", "\\gg", "\\cong", "\\propto"]
)  # fmt: skip

_NO_ATOMS = frozenset(
    ["\\pm", "\\mp", "\\mid", "\\rvert", "\\rfloor", "\\rceil", "\\circ",
     "\\degree", "\\rangle", "\\rbrace", "\\vert", "\\percent",
     *_RELATIONS, *_SET_SIGNS, *_TIMES, *_OVER, *_UNREADABLE]
)  # fmt: skip


def parse(text: str) -> Node:
    r"""The tree of an answer.

    Args:
      text: as `normalise.latex` returns it.

    Raises:
      tree.ParseError: it cannot be read.
      tree.TooLarge: it is too long or too deep.

    Example:
      >>> parse("x=1").op, parse("[0,1)").value
      ('rel', ('[', ')'))
    """
    return _Parser(lexer.tokens(text, UNITS)).run()


class _Parser:
    def __init__(self, found: list[Token]):
        self._tokens = found
        self._at = 0
        self._depth = 0
        self._bars = 0
        self._nodes = 0

    def run(self) -> Node:
        node = self._statement()
        if self._peek() is not STOP:
            raise ParseError(f"unexpected {self._peek().text!r}")
        return node

    # Tokens.

    def _peek(self, ahead: int = 0) -> Token:
        at = self._at + ahead
        return self._tokens[at] if at < len(self._tokens) else STOP

    def _next(self) -> Token:
        token = self._peek()
        self._at += 1
        self._nodes += 1
        if self._nodes > tree.MAX_NODES:
            raise tree.TooLarge("an answer of too many parts")
        return token

    def _sees(self, *texts: str) -> bool:
        token = self._peek()
        return token.kind in ("sign", "name") and token.text in texts

    def _skip(self, *texts: str) -> bool:
        if self._sees(*texts):
            self._next()
            return True
        return False

    def _need(self, *texts: str) -> str:
        if not self._sees(*texts):
            raise ParseError(f"expected {texts[0]!r}, got {self._peek().text!r}")
        return self._next().text

    def _enter(self) -> None:
        self._depth += 1
        if self._depth > tree.MAX_DEPTH:
            raise tree.TooLarge("an answer nested too deeply")

    # Lists and relations.

    def _statement(self) -> Node:
        groups = [self._group()]
        while self._skip(";"):
            groups.append(self._group())
        if len(groups) == 1:
            return groups[0]
        if all(group.op != "list" for group in groups):
            return Node("list", tuple(groups))
        return Node("groups", tuple(groups))

    def _group(self) -> Node:
        start = self._at
        items = self._items((",", "and", "or"))
        if len(items) == 1:
            return items[0]
        joiners = {token.text for token in self._tokens[start : self._at]}
        joiner = "or" if "or" in joiners else "and" if "and" in joiners else ","
        return Node("list", tuple(items), joiner)

    def _items(self, separators: tuple[str, ...]) -> list[Node]:
        items = [self._item()]
        while self._skip(*separators):
            while self._skip(*separators):  # ", and"
                pass
            items.append(self._item())
        return items

    def _item(self) -> Node:
        self._enter()
        sides, signs = [self._side()], []
        while (token := self._peek()).kind in ("sign", "name"):
            if token.text not in _RELATIONS:
                break
            sign = _RELATIONS[self._next().text]
            if self._skip("=") and sign in "<>":
                sign += "="
            signs.append(sign)
            sides.append(self._side())
        self._depth -= 1
        if not signs:
            return sides[0]
        if set(signs) == {":"}:
            return Node("ratio", tuple(sides))
        if ":" in signs:
            return _ratio_assignment(sides, signs)
        return Node("rel", tuple(sides), tuple(signs))

    def _side(self) -> Node:
        node = self._sum()
        while self._peek().text in _SET_SIGNS and self._peek().kind != "text":
            node = Node(_SET_SIGNS[self._next().text], (node, self._sum()))
        words = []
        while self._peek().kind == "text":
            words.append(self._next().text)
            words.extend(self._unit_power())
        return Node("unit", (node,), " ".join(words)) if words else node

    def _unit_power(self) -> list[str]:
        """The rest of a unit such as cm^2, cm^{2} or m/s."""
        if self._skip("^"):
            return ["^" + _plain(self._tex_argument())]
        if self._sees("/") and self._peek(1).kind in ("text", "letter"):
            self._next()
            return ["/", self._next().text, *self._unit_power()]
        return []

    # Arithmetic.

    def _sum(self) -> Node:
        if self._peek().kind == "text":
            return self._words()
        terms = [self._term()]
        while self._sees("+", "-", "\\pm", "\\mp"):
            sign = self._next().text
            term = self._term()
            if sign in ("+", "-"):
                terms.append(tree.negative(term) if sign == "-" else term)
            else:
                sofar = terms[0] if len(terms) == 1 else Node("add", tuple(terms))
                terms = [Node(sign[1:], (sofar, term))]
        return terms[0] if len(terms) == 1 else Node("add", tuple(terms))

    def _words(self) -> Node:
        words = []
        while self._peek().kind in ("text", "letter", "number"):
            words.append(self._next().text)
        return Node("text", (), " ".join(words))

    def _term(self) -> Node:
        if self._sees("+", "-", "\\pm", "\\mp"):
            return self._signed(self._term)
        factors = [self._factor()]
        while True:
            if self._peek().text in _TIMES and self._peek().kind != "text":
                self._next()
                factors.append(self._factor())
            elif self._peek().text in _OVER and self._peek().kind != "text":
                self._next()
                top = factors[0] if len(factors) == 1 else Node("mul", tuple(factors))
                factors = [Node("div", (top, self._factor()))]
            elif self._starts_atom():
                factors.append(self._factor_beside(factors[-1]))
            else:
                break
        return _product(factors)

    def _signed(self, operand) -> Node:
        self._enter()
        sign = self._next().text
        node = operand()
        self._depth -= 1
        if sign == "+":
            return node
        return tree.negative(node) if sign == "-" else Node(sign[1:], (node,))

    def _factor_beside(self, left: Node) -> Node:
        """A factor without a sign before it; a number beside a number is none."""
        if self._peek().kind == "number" and left.op in ("number", "div"):
            if left.op == "number" and self._peek(1).text == "/":
                return self._ascii_fraction(left)
            raise ParseError("two numbers side by side")
        return self._factor()

    def _ascii_fraction(self, whole: Node) -> Node:
        """The 1/3 of 333 1/3; `_product` adds it to the whole number."""
        top, _, bottom = self._next(), self._next(), self._peek()
        if bottom.kind != "number" or len(whole.args):
            raise ParseError("two numbers side by side")
        self._next()
        parts = (_number(top.text), _number(bottom.text))
        return Node("div", parts, "beside")

    def _factor(self) -> Node:
        if self._sees("+", "-", "\\pm", "\\mp"):
            return self._signed(self._factor)
        node = self._postfix(self._atom())
        if not self._skip("^"):
            return node
        return self._raised(node)

    def _raised(self, node: Node) -> Node:
        if self._skip("\\circ", "\\degree"):
            return self._postfix(Node("deg", (node,)))
        if self._sees("{") and self._peek(1).text in ("\\circ", "\\degree"):
            if self._peek(2).text == "}":
                self._at += 3
                return self._postfix(Node("deg", (node,)))
        if self._sees("'", "\\prime"):
            self._next()
            return Node("call", (node,), "prime")
        raised = Node("pow", (node, self._exponent()))
        raised = self._postfix(raised)
        if self._skip("^"):
            raise ParseError("two exponents")
        return raised

    def _exponent(self) -> Node:
        if self._sees("+", "-"):
            return self._signed(self._exponent)
        self._enter()
        node = self._atom()
        if not self._sees("{") and self._peek().text == "!":
            node = self._postfix(node)
        if self._skip("^"):  # 2^3^4 is 2^(3^4)
            node = Node("pow", (node, self._exponent()))
        self._depth -= 1
        return node

    def _postfix(self, node: Node) -> Node:
        while True:
            if self._skip("!"):
                double = self._sees("!") and not self._peek().spaced
                if double:
                    self._next()
                node = Node("call", (node,), "factorial2" if double else "factorial")
            elif self._skip("%", "\\%", "\\percent"):
                node = Node("pct", (node,))
            elif self._skip("\\circ", "\\degree"):
                node = Node("deg", (node,))
            elif self._skip("'"):
                node = Node("call", (node,), "prime")
            else:
                return node

    def _starts_atom(self) -> bool:
        token = self._peek()
        if token.kind in ("number", "letter", "word", "begin"):
            return True
        if token.kind == "name":
            return token.text not in _NO_ATOMS
        return token.text in ("(", "[", "{", "\\{") or (
            token.text == "|" and not self._bars
        )

    # Atoms.

    def _atom(self) -> Node:
        self._enter()
        token = self._next()
        if token.kind == "number":
            node = self._number(token)
        elif token.kind == "letter":
            node = self._symbol(token.text)
        elif token.kind == "word":
            node = self._function(token.text)
        elif token.kind == "name":
            node = self._command(token.text)
        elif token.kind == "begin":
            node = self._matrix(token.text)
        elif token.kind == "text":
            node = Node("text", (), token.text)
        else:
            node = self._bracketed(token.text)
        self._depth -= 1
        return node

    def _number(self, token: Token) -> Node:
        if self._peek().text in (".", "\\overline", "\\dot"):
            dotted = int(self._peek().text == ".")
            if self._peek(dotted).text in ("\\overline", "\\dot"):
                self._at += dotted + 1
                return _recurring(token.text, _plain(self._tex_argument()))
        if self._skip("_"):
            base = _plain(self._tex_argument())
            if not base.isdigit() or len(base) > 2:
                raise ParseError("a base that is no number")
            return Node("base", (), (token.text.lstrip("0") or "0", int(base)))
        return _number(token.text)

    def _symbol(self, name: str) -> Node:
        if self._skip("_"):
            name += "_" + self._subscript()
        while self._sees("'"):
            self._next()
            name += "'"
        applied = name[0] in _APPLIED and len(name) <= 5
        if applied and self._sees("^") and self._peek(1).text == "{":
            texts = [self._peek(i).text for i in range(2, 5)]
            if texts == ["-", "1", "}"] and self._peek(5).text == "(":
                self._at += 5
                name += "^-1"
        if applied and self._sees("("):
            return Node(
                "call", self._bracketed(self._next().text, call=True).args, name
            )
        return Node("symbol", (), name)

    def _subscript(self) -> str:
        """The raw text of a subscript, so that x_1 and x_{1} are one name."""
        if not self._skip("{"):
            return self._next().text
        text, depth = "", 1
        while depth:
            token = self._next()
            if token is STOP:
                raise ParseError("a subscript that does not end")
            depth += (token.text == "{") - (token.text == "}")
            text += token.text if depth else ""
        return text

    def _function(self, name: str) -> Node:
        name = _ALIASES.get(name, name)
        base = exponent = None
        if self._skip("_"):
            base = self._tex_argument()
        if self._skip("^"):
            exponent = self._exponent()
            if _plain(exponent) == "-1" and name in _INVERSE:
                name, exponent = _INVERSE[name], None
        arguments = self._arguments()
        if name == "log" and base is not None:
            node = Node("call", (*arguments, base), "log")
        elif name == "sqrt":
            node = Node("root", (*arguments, tree.TWO))
        else:
            node = Node("call", arguments, name)
        return Node("pow", (node, exponent)) if exponent else node

    def _arguments(self) -> tuple[Node, ...]:
        """What a function is applied to: (a, b), or factors up to the next sign."""
        if self._sees("("):
            return self._bracketed(self._next().text, call=True).args
        if self._sees("+", "-"):
            return (self._signed(lambda: self._arguments()[0]),)
        factors = [self._factor_of_argument()]
        while self._starts_atom() and self._peek().kind != "word":
            if self._peek().text[1:] in lexer.FUNCTIONS or self._sees("(", "["):
                break
            factors.append(self._factor_beside(factors[-1]))
        return (_product(factors),)

    def _factor_of_argument(self) -> Node:
        if self._peek().kind == "word" or self._starts_atom():
            return self._factor()
        raise ParseError(f"a function of {self._peek().text!r}")

    def _command(self, name: str) -> Node:
        if name in _CONSTANTS:
            return _CONSTANTS[name]
        if name in _FRACTIONS:
            return Node("div", (self._tex_argument(), self._tex_argument()), "frac")
        if name == "\\sqrt":
            degree = self._bracketed("[") if self._skip("[") else tree.TWO
            return Node("root", (self._tex_argument(), degree))
        if name == "\\usqrt":
            return Node("root", (self._atom(), tree.TWO))
        if name in _BINOMIALS:
            arguments = (self._tex_argument(), self._tex_argument())
            return Node("call", arguments, "binomial")
        if name in _BOXES:
            return self._tex_argument()
        if name[1:] in lexer.FUNCTIONS or name[1:] in _INVERSE.values():
            return self._function(name[1:])
        if name in ("\\lfloor", "\\lceil", "\\lvert", "\\vert"):
            return self._between(name)
        if name in ("\\langle", "\\lbrace"):
            return self._bracketed({"\\langle": "(", "\\lbrace": "\\{"}[name])
        if name in _ACCENTS:
            name += "{" + _plain(self._tex_argument()) + "}"
            return Node("symbol", (), name)
        if name in _UNREADABLE or name in _RELATIONS or name in _SET_SIGNS:
            raise ParseError(f"cannot read {name}")
        return self._symbol(name)

    def _tex_argument(self) -> Node:
        r"""A LaTeX argument: {group}, or one character; \frac12 is 1/2."""
        token = self._peek()
        if token.kind == "number" and token.text.isdigit() and len(token.text) > 1:
            self._tokens[self._at] = Token("number", token.text[1:])
            return _number(token.text[0])
        return self._atom()

    def _between(self, opening: str) -> Node:
        bar = opening in ("\\lvert", "\\vert", "|")
        self._bars += bar
        node = self._sum()
        self._bars -= bar
        self._need({"\\lfloor": "\\rfloor", "\\lceil": "\\rceil", "\\lvert": "\\rvert",
                    "\\vert": "\\vert"}.get(opening, "|"))  # fmt: skip
        name = {"\\lfloor": "floor", "\\lceil": "ceil"}.get(opening, "abs")
        return Node("call", (node,), name)

    def _bracketed(self, opening: str, call: bool = False) -> Node:
        if opening == "|":
            return self._between("|")
        if opening == "{":
            return self._braces()
        if opening not in _CLOSERS:
            raise ParseError(f"unexpected {opening!r}")
        bars, self._bars = self._bars, 0
        closers = ("\\}", "\\rbrace") if opening == "\\{" else (")", "]", "\\rangle")
        items: list[Node] = []
        if opening == "\\{":
            self._skip_to_condition()
        if not self._sees(*closers):
            items = self._items((",", ";", "and", "or"))
        closing = self._need(*closers)
        self._bars = bars
        if opening == "\\{":
            return _set(items)
        if call and items:
            return Node("seq", tuple(items))
        if len(items) == 1 and (opening, closing) in (("(", ")"), ("[", "]")):
            return items[0]
        if not items:
            raise ParseError("empty parentheses")
        return Node("seq", tuple(items), (opening, closing.replace("\\rangle", ")")))

    def _skip_to_condition(self) -> None:
        """Of {x in R | x > 1} only the condition matters."""
        for ahead in range(6):
            token = self._peek(ahead)
            if token.text in ("\\mid", "|", ":") and self._peek().kind == "letter":
                if ahead in (1, 3):  # x | or x in R |
                    self._at += ahead + 1
                return
            if token.kind not in ("letter", "name"):
                return

    def _braces(self) -> Node:
        """LaTeX braces group; with a comma inside they are meant as a set."""
        bars, self._bars = self._bars, 0
        if self._skip("}"):
            raise ParseError("empty braces")
        items = self._items((",", ";"))
        self._need("}")
        self._bars = bars
        return items[0] if len(items) == 1 else _set(items)

    def _matrix(self, environment: str) -> Node:
        if environment not in _MATRICES:
            raise ParseError(f"cannot read the environment {environment}")
        if environment == "array" and self._skip("{"):
            while not self._skip("}"):
                if self._next() is STOP:
                    raise ParseError("an array without columns")
        rows, row = [], []
        while True:
            row.append(self._sum())
            if self._skip("&"):
                continue
            rows.append(Node("seq", tuple(row)))
            row = []
            more = self._skip("\\\\")
            if self._peek().kind == "end":
                self._next()
                break
            if not more:
                raise ParseError(f"unexpected {self._peek().text!r} in a matrix")
        if len({len(row.args) for row in rows}) != 1:
            raise ParseError("rows of unequal length")
        return Node("matrix", tuple(rows))


def _number(text: str) -> Node:
    """A number node; one written as a decimal remembers its significant digits."""
    value = lexer.value_of(text)
    grouped = text.count("{,}") and not re.fullmatch(r"\d+(\{,\}\d{3})+", text)
    if "." not in text and not grouped:
        return number(value)
    written, _, exponent = text.replace("{,}", ".").lower().partition("e")
    places = len(written.partition(".")[2]) - int(exponent or 0)
    digits = len(written.replace(".", "").lstrip("0"))
    return Node("number", (number(digits), number(Fraction(10) ** -places)), value)


def _recurring(start: str, period: str) -> Node:
    if not period.isdigit() or len(period) > 50:
        raise ParseError("a period that is no number")
    whole, _, fixed = start.partition(".")
    first = Fraction(int(whole + fixed or 0), 10 ** len(fixed))
    repeated = Fraction(int(period), (10 ** len(period) - 1) * 10 ** len(fixed))
    return number(first + repeated)


def _product(factors: list[Node]) -> Node:
    r"""Multiplies; a whole number beside a fraction of numbers is a mixed number."""
    if len(factors) >= 2 and factors[-1].op in ("pct", "deg"):  # 12 1/2 %
        inner = _product([*factors[:-1], factors[-1].args[0]])
        return Node(factors[-1].op, (inner,))
    if len(factors) >= 2:
        whole, part = factors[0], factors[1]
        mixed = part.op == "div" and part.value in ("frac", "beside")
        plain = all(each.op == "number" and not each.args for each in part.args)
        if mixed and plain and whole.op == "number" and not whole.args:
            factors = [Node("add", (whole, part)), *factors[2:]]
    return factors[0] if len(factors) == 1 else Node("mul", tuple(factors))


def _set(items: list[Node]) -> Node:
    relations = [item for item in items if item.op == "rel"]
    if len(items) == 1 and relations:
        return items[0]
    return Node("set", tuple(items))


def _ratio_assignment(sides: list[Node], signs: list[str]) -> Node:
    """V_1 : V_2 = 11 : 21, whose name is dropped."""
    if signs.count("=") != 1 or set(signs) != {":", "="}:
        raise ParseError("a colon that is no ratio")
    at = signs.index("=")
    left, right = sides[: at + 1], sides[at + 1 :]
    if len(left) < 2 or len(right) < 2:
        raise ParseError("a colon that is no ratio")
    name = Node("ratio", tuple(left))
    return Node("rel", (name, Node("ratio", tuple(right))), ("=",))


def _plain(node: Node) -> str:
    """The text of a small tree, for subscripts, periods and bases."""
    if node.op == "number":
        return str(node.value)
    if node.op == "symbol":
        return node.value
    if node.op == "neg":
        return "-" + _plain(node.args[0])
    if node.op == "mul":
        return "".join(map(_plain, node.args))
    return repr(node)
