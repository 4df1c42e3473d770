"""Cluster metadata: the store, the image that every broker keeps of it, and the changes to it."""
