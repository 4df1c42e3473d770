"""The network side: the only package of the broker that touches sockets."""
