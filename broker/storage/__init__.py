"""The log on disk: Kafka's directory, byte for byte. Synchronous, files only."""
