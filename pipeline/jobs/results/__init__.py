"""The results of jobs: directories, summaries, pictures.

| module | what |
|---|---|
| `counting` | counting records on their way, so that a job's summary costs no second look at them |
| `filesystem` | the small things that jobs do with directories, on any file system that Spark knows, such as HDFS |
| `output` | where a job's result goes: a directory that is empty, or that `--overwrite` gives up, in one of three |
| `stats_plots` | the files that `stats --output` writes: two tables as CSV, and of each topic a picture with six |
| `stream_progress` | what a stream says while it runs: a line for each batch that had records |
| `summary` | what a job says: lines on the way, and at its end what it has done, with rates |
"""
