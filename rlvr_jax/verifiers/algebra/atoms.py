"""Numbers, symbols, functions, brackets and matrices: the leaves of the grammar."""

from rlvr_jax.verifiers.algebra import lexer, notation, tree
from rlvr_jax.verifiers.algebra.arithmetic import Arithmetic, product
from rlvr_jax.verifiers.algebra.lexer import STOP, Token
from rlvr_jax.verifiers.algebra.matrices import determinant
from rlvr_jax.verifiers.algebra.numbers import number_node, plain, recurring
from rlvr_jax.verifiers.algebra.tree import Node, ParseError

_RECURRING = ("\\overline", "\\dot", "\\bar")
_DOMAINS = [
    (len(domain), domain)
    for domain in (
        (),
        ("\\in", "R"),
        ("\\in", "\\R"),
        ("\\in", "\\mathbb", "R"),
        ("\\in", "\\mathbb", "{", "R", "}"),
    )
]
"""What may stand between x and the bar of {x | x > 1} without a meaning of its own."""


class Atoms(Arithmetic):
    """Reads what arithmetic is made of."""

    def items(self, separators: tuple[str, ...]) -> list[Node]:
        """The members of a list; defined in `parser`."""
        raise NotImplementedError

    def atom(self) -> Node:
        """A number, symbol, function, command, matrix or bracket."""
        self.enter()
        token = self.next()
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
        self.depth -= 1
        return node

    def _number(self, token: Token) -> Node:
        if self.peek().text in (".", *_RECURRING):
            dotted = int(self.peek().text == ".")
            if self.peek(dotted).text in _RECURRING:
                self.at += dotted + 1
                return recurring(token.text, plain(self.tex_argument()))
        if self.skip("_"):
            base = plain(self.tex_argument())
            if not base.isdigit() or len(base) > 2:
                raise ParseError("a base that is no number")
            if int(base) == 10:
                return number_node(token.text)
            return Node("base", (), (token.text.lstrip("0") or "0", int(base)))
        return number_node(token.text)

    def _symbol(self, name: str) -> Node:
        if self.skip("_"):
            name += "_" + self._subscript()
        while self.sees("'"):
            self.next()
            name += "'"
        applied = name[0] in notation.APPLIED and len(name) <= 5
        if applied and self.sees("^") and self.peek(1).text == "{":
            texts = [self.peek(i).text for i in range(2, 5)]
            if texts == ["-", "1", "}"] and self.peek(5).text == "(":
                self.at += 5
                name += "^-1"
        if applied and self.sees("("):
            return Node("call", self._bracketed(self.next().text, call=True).args, name)
        return Node("symbol", (), name)

    def _subscript(self) -> str:
        """The raw text of a subscript, so that x_1 and x_{1} are one name."""
        if not self.skip("{"):
            return self.next().text
        text, depth = "", 1
        while depth:
            token = self.next()
            if token is STOP:
                raise ParseError("a subscript that does not end")
            depth += (token.text == "{") - (token.text == "}")
            text += token.text if depth else ""
        return text

    def _function(self, name: str) -> Node:
        name = notation.ALIASES.get(name, name)
        base = exponent = None
        if self.skip("_"):
            base = self.tex_argument()
        if self.skip("^"):
            exponent = self.exponent()
            if plain(exponent) == "-1" and name in notation.INVERSE:
                name, exponent = notation.INVERSE[name], None
        arguments = self._arguments()
        if name == "log" and base is not None:
            node = Node("call", (*arguments, base), "log")
        elif name in ("sqrt", "cbrt"):
            degree = tree.number(2 if name == "sqrt" else 3)
            node = Node("root", (*arguments, degree))
        else:
            node = Node("call", arguments, name)
        return Node("pow", (node, exponent)) if exponent else node

    def _arguments(self) -> tuple[Node, ...]:
        """What a function is applied to: (a, b), or factors up to the next sign."""
        if self.sees("("):
            return self._bracketed(self.next().text, call=True).args
        if self.sees("+", "-"):
            return (self.signed(lambda: self._arguments()[0]),)
        factors = [self._factor_of_argument()]
        while self.starts_atom() and self.peek().kind != "word":
            if self.peek().text[1:] in lexer.FUNCTIONS or self.sees("(", "["):
                break
            factors.append(self.factor_beside(factors[-1]))
        return (product(factors),)

    def _factor_of_argument(self) -> Node:
        if self.peek().kind == "word" or self.starts_atom():
            return self.factor()
        raise ParseError(f"a function of {self.peek().text!r}")

    def _command(self, name: str) -> Node:
        if name in notation.CONSTANTS:
            return notation.CONSTANTS[name]
        if name in notation.FRACTIONS:
            return Node("div", (self.tex_argument(), self.tex_argument()))
        if name == "\\sqrt":
            degree = self._bracketed("[") if self.skip("[") else tree.TWO
            return Node("root", (self.tex_argument(), degree))
        if name in notation.ROOTS:
            return Node("root", (self.atom(), tree.number(notation.ROOTS[name])))
        if name in notation.BINOMIALS:
            arguments = (self.tex_argument(), self.tex_argument())
            return Node("call", arguments, "binomial")
        if name in notation.BOXES:
            return self.tex_argument()
        if name[1:] in lexer.FUNCTIONS or name[1:] in notation.INVERSE.values():
            return self._function(name[1:])
        if name in ("\\lfloor", "\\lceil", "\\lvert", "\\vert"):
            return self._between(name)
        if name in ("\\langle", "\\lbrace"):
            return self._bracketed({"\\langle": "(", "\\lbrace": "\\{"}[name])
        if name in notation.ACCENTS:
            name += "{" + plain(self.tex_argument()) + "}"
            return self._symbol(name)
        if (
            name in notation.UNREADABLE
            or name in notation.RELATIONS
            or name in notation.SET_SIGNS
        ):
            raise ParseError(f"cannot read {name}")
        return self._symbol(name)

    def tex_argument(self) -> Node:
        r"""A LaTeX argument: {group}, or one character; \frac12 is 1/2."""
        token = self.peek()
        if token.kind == "number" and token.text.isdigit() and len(token.text) > 1:
            self.tokens[self.at] = Token("number", token.text[1:])
            return number_node(token.text[0])
        return self.atom()

    def _between(self, opening: str) -> Node:
        bar = opening in ("\\lvert", "\\vert", "|")
        self.bars += bar
        node = self.sum()
        self.bars -= bar
        self.need({"\\lfloor": "\\rfloor", "\\lceil": "\\rceil", "\\lvert": "\\rvert",
                    "\\vert": "\\vert"}.get(opening, "|"))  # fmt: skip
        name = {"\\lfloor": "floor", "\\lceil": "ceil"}.get(opening, "abs")
        return Node("call", (node,), name)

    def _bracketed(self, opening: str, call: bool = False) -> Node:
        if opening == "|":
            return self._between("|")
        if opening == "{":
            return self._braces()
        if opening not in notation.CLOSERS:
            raise ParseError(f"unexpected {opening!r}")
        bars, self.bars = self.bars, 0
        closers = ("\\}", "\\rbrace") if opening == "\\{" else (")", "]", "\\rangle")
        items: list[Node] = []
        if opening == "\\{":
            self._skip_to_condition()
        if not self.sees(*closers):
            items = self.items((",", ";", "and", "or"))
        closing = self.need(*closers)
        self.bars = bars
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
        """Of {x | x > 1} and {x in R | x > 1} only the condition matters."""
        if self.peek().kind != "letter":
            return
        for ahead, domain in _DOMAINS:
            texts = tuple(self.peek(1 + i).text for i in range(ahead))
            if texts == domain and self.peek(1 + ahead).text in ("\\mid", "|", ":"):
                self.at += ahead + 2
                return

    def _braces(self) -> Node:
        """LaTeX braces group; with a comma inside they are meant as a set."""
        bars, self.bars = self.bars, 0
        if self.skip("}"):
            raise ParseError("empty braces")
        items = self.items((",", ";"))
        self.need("}")
        self.bars = bars
        return items[0] if len(items) == 1 else _set(items)

    def _matrix(self, environment: str) -> Node:
        if environment not in notation.MATRICES:
            raise ParseError(f"cannot read the environment {environment}")
        if environment == "array" and self.skip("{"):
            while not self.skip("}"):
                if self.next() is STOP:
                    raise ParseError("an array without columns")
        rows, row = [], []
        while True:
            row.append(self.sum())
            if self.skip("&"):
                continue
            rows.append(Node("seq", tuple(row)))
            row = []
            more = self.skip("\\\\")
            if self.peek().kind == "end":
                self.next()
                break
            if not more:
                raise ParseError(f"unexpected {self.peek().text!r} in a matrix")
        if len({len(row.args) for row in rows}) != 1:
            raise ParseError("rows of unequal length")
        matrix = Node("matrix", tuple(rows))
        return determinant(matrix) if environment == "vmatrix" else matrix


def _set(items: list[Node]) -> Node:
    relations = [item for item in items if item.op == "rel"]
    if len(items) == 1 and relations:
        return items[0]
    return Node("set", tuple(items))
