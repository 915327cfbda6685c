"""Instructions that a program can check: the 25 constraints of IFEval and a few more.

`verify` is the verifier, `table` maps an instruction's id to its check. The checks
are in `content` (words, letters, case, language) and `layout` (lists, paragraphs,
titles, ends); `counting` and `punkt` find words and sentences as IFEval does.
"""
