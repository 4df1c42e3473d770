"""The texts of the command `python -m protocol`; `odradek.protocol.__main__` parses its arguments.

| module | what |
|---|---|
| `api_text` | APIs as text: the list of all, the history of one, the layout and the compiled code of one version |
| `explainer` | a decoder that returns a row with offset, bytes, name and value for every field |
| `field_text` | types, defaults and values of fields as text |
"""
