"""Certificates for a test, made by openssl: an authority, a server on 127.0.0.1, a client; and a foreign authority."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.peers.availability import program


class Certificates:
    """The files `<name>.pem` and `<name>.key` of each name in `directory`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._make("authority", "-addext", "basicConstraints=critical,CA:true")
        self._make("foreign", "-addext", "basicConstraints=critical,CA:true")
        signed = ("-CA", str(self.path("authority.pem")), "-CAkey", str(self.path("authority.key")))
        self._make("server", *signed, "-addext", "subjectAltName=IP:127.0.0.1")
        self._make("client", *signed)
        self._make("stranger", "-CA", str(self.path("foreign.pem")), "-CAkey", str(self.path("foreign.key")))

    def path(self, name: str) -> Path:
        return self.directory / name

    def read(self, name: str) -> bytes:
        return self.path(name).read_bytes()

    def _make(self, name: str, *options: str) -> None:
        command = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
        key, certificate = self.path(f"{name}.key"), self.path(f"{name}.pem")
        files = ["-subj", f"/CN={name}", "-keyout", str(key), "-out", str(certificate)]
        subprocess.run([program("openssl", "openssl"), *command, *files, *options], check=True, capture_output=True)
