"""The output of jobs: directories, summaries, plots.

| module | what |
|---|---|
| `output` | the formats that a result can have |
| `replacement` | the replacement of an earlier result, which stays until the new one is complete |
| `output_lock` | a lock that keeps two jobs from writing to one output at a time |
| `filesystem` | operations on directories of any file system that Spark supports, such as HDFS |
| `counting` | count records while Spark writes them |
| `summary` | progress lines, and the summary at a job's end |
| `stats_plots` | the files that `stats --output` writes |
"""
