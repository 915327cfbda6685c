"""Reads answers as mathematics and says whether two are equal.

From text to verdict: `normalise` (one spelling), `lexer` and `parser` (to a `tree`),
`compare` (lists, sets, relations), `scalars` (single expressions), which ask `rational`
(exact) and then `numeric` (many digits). `equivalence` ties them together. Nothing is
ever evaluated before its size is known, and nothing is ever run.
"""
