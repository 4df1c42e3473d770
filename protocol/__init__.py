"""Kafka's wire protocol and record formats: bytes to values and back, and nothing else.

No sockets, files, clocks, threads or logging: the broker and the client use the same classes.
"""
