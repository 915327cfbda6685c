"""Programs judged by tests that they never meet.

Trusted, in the verifier's process: `program` finds the program in the completion,
`reference` reads what it is tested with, `asserts` and `cases` run the tests, `remote`
stands in for the program's functions, `sandbox` and `starting` start, watch and end
cells, `judge` gives the verdict. `heldout`, `mutation` and `scan` examine tests and
programs.

Isolated, one cell for each completion: `mint` forks it, `namespaces` are its walls,
`cell` its first process, `guest` runs the program. `wire` and `values` carry JSON
between the two sides.

Tests and expected values stay on the trusted side. The program is called by value:
plain data goes in, plain data comes back and is compared outside.
"""
