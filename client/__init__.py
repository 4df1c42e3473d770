"""The bundled asyncio client."""
