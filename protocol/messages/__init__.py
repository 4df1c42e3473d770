"""The messages: one module per API, request and response together, every version in one class."""
