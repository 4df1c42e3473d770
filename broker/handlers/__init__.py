"""The handlers: one module for each API, named as its module in `odradek.protocol.messages`.

The folder has as many modules as there are served APIs, because the name of an API is the name of its file. Every
module has the same two functions; see `odradek.broker.apis.table`, which lists them.
"""
