"""The log on disk: Kafka's directory, byte for byte. Synchronous, files only.

`open_log_dir` is the way in for whoever wants to look at such a directory: see `stored_log_dir`. A broker goes by
`log_dir`.
"""

from broker.storage.stored_log_dir import StoredLogDir, open_log_dir
from broker.storage.stored_partition import StoredPartition

__all__ = ["StoredLogDir", "StoredPartition", "open_log_dir"]
