"""A network between a proxy and a PostgreSQL server, which can swallow everything."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from pathlib import Path

from postgres_server import Server


class Network:
    """What is between a proxy and the server: it can swallow everything."""

    def __init__(self, server: Server, folder: Path) -> None:
        self._to, self._open = ("127.0.0.1", server.port), threading.Event()
        self._open.set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        port = self._listener.getsockname()[1]
        passfile = folder / "pgpass"
        passfile.write_text(server.passfile.read_text().replace(f":{server.port}:", f":{port}:"))
        passfile.chmod(0o600)
        self.dsn = f"host=127.0.0.1 port={port} user=dpsql dbname=postgres passfile={passfile}"
        self._sockets: list[socket.socket] = [self._listener]
        threading.Thread(target=self._accept, daemon=True).start()

    def hang(self) -> None:
        self._open.clear()

    def go_on(self) -> None:
        self._open.set()

    def close(self) -> None:
        self.go_on()
        for one in self._sockets:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, far = self._listener.accept()[0], socket.create_connection(self._to)
                self._sockets += [near, far]
                for one, other in ((near, far), (far, near)):
                    threading.Thread(target=self._pass_on, args=(one, other), daemon=True).start()

    def _pass_on(self, one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while data := one.recv(65536):
                self._open.wait()
                other.sendall(data)
            other.shutdown(socket.SHUT_WR)
