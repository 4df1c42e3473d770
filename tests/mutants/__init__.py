"""Tests of the tests: brokers with one defect each, which the simulation or a directed test must find.

| module | what |
|---|---|
| `mutants` | the mutants: the rule that each breaks, and what must find it; the search by simulation. Begin here |
| `defects` | the code of the defects |
| `directed` | the directed tests, run without and with their mutants |
| `test_mutants` | all mutants: by directed tests, or by a few seeds; `make simulate-mutants` runs more seeds |
"""
