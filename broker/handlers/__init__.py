"""One module per API: what the broker does with each request."""
