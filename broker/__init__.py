"""The broker: server → handlers → replication and coordinators → storage, with metadata beside them."""
