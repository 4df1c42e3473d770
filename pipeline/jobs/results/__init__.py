"""The output of jobs: directories, summaries, plots.

| module | what |
|---|---|
| `output` | the output directory of a job, and the formats that it can have |
| `filesystem` | operations on directories of any file system that Spark supports, such as HDFS |
| `counting` | count records while Spark writes them |
| `summary` | progress lines, and the summary at a job's end |
| `stats_plots` | the files that `stats --output` writes |
"""
