"""Partitions and their replicas: leadership, high watermark, fetch sessions."""
