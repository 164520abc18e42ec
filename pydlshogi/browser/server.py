"""The server of the board: pages, requests and events, for this machine alone.

Every address begins with a random token. The server checks the header ``Host`` (against DNS
rebinding) and ``Origin`` (against other sites in the same browser), and bounds what it reads.
"""

from __future__ import annotations

import contextlib
import functools
import http.server
import ipaddress
import json
import secrets
import socket
import socketserver
import sys
import threading
import urllib.parse
from http import HTTPStatus
from pathlib import Path
from typing import Any, Callable

from pydlshogi.browser.game import GameError
from pydlshogi.browser.hall import Hall
from pydlshogi.browser.table import Table
from pydlshogi.drawing.font import font_subset
from pydlshogi.drawing.page import VIEWER
from pydlshogi.errors import UserError

_PAGE = Path(__file__).resolve().parent / "page"
#: What is served as it is: the name in the address, the file and its type.
_FILES = {
    "": (_PAGE / "play.html", "text/html"),
    "play.js": (_PAGE / "play.js", "text/javascript"),
    "words.js": (_PAGE / "words.js", "text/javascript"),
    "play.css": (_PAGE / "play.css", "text/css"),
    "board.js": (VIEWER / "board.js", "text/javascript"),
}

#: The largest body of a request, in bytes, and the seconds that reading or writing may wait.
_MOST_BYTES, _PATIENCE = 1 << 20, 30
#: Seconds between two signs of life of a stream of events, and the least between two events.
_PING, _PAUSE = 15.0, 0.05
#: Seconds of a hint's search, and the most of any that the browser may ask for.
_HINT, _MOST_SEARCH = 1.0, 10.0

#: What may be loaded: by the board the server's files, by the page of a game what it contains.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors "
)
_POLICY_OF_GAMES = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; font-src data:; "
    "base-uri 'none'; form-action 'none'; sandbox allow-scripts; frame-ancestors "
)


class PortError(UserError):
    """The server cannot use its address."""


class Refusal(Exception):
    """A request is answered by a status and a sentence."""

    def __init__(self, status: HTTPStatus, sentence: str = "There is no such page.") -> None:
        super().__init__(sentence)
        self.status = status


class BoardServer(http.server.ThreadingHTTPServer):
    """Serves a hall; ``with`` ends its engines.

    Args:
        hall: The tables.
        host: Address to listen at.
        port: Port; 0 for any free one.
        embedded: Whether a notebook may show the page in a frame. Its proxy (Colab) has another
            host name, so only the token protects then.

    PortError: the address cannot be used.
    """

    daemon_threads = True
    request_queue_size = 128  # connections that wait; the standard 5 refuses a burst of requests
    allow_reuse_address = sys.platform != "win32"  # there, two servers could share a port

    def __init__(
        self, hall: Hall, host: str = "127.0.0.1", port: int = 0, *, embedded: bool = False
    ) -> None:
        self.hall, self.embedded = hall, embedded
        self.token = secrets.token_urlsafe(16)
        if ":" in host:
            self.address_family = socket.AF_INET6
        try:
            super().__init__((host, port), _Handler)
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise PortError(
                f"http://{host}:{port} cannot be used ({reason}). Choose another port or host."
            ) from None
        self._host = host

    def server_bind(self) -> None:
        """Binds the address. The standard class also asks for its name, which may take seconds."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]

    @property
    def address(self) -> str:
        """The address of the page, also for other machines."""
        return self._address(socket.gethostname())

    @property
    def local_address(self) -> str:
        """The address for a browser of this machine, which may not find the machine's name."""
        return self._address("localhost")

    def _address(self, name: str) -> str:
        host = name if self._host in ("0.0.0.0", "::") else self._host
        host = f"[{host}]" if ":" in host else host
        return f"http://{host}:{self.server_port}/{self.token}/"

    def is_local(self) -> bool:
        """Says whether only programs of this machine reach the server."""
        with contextlib.suppress(ValueError):
            return ipaddress.ip_address(self._host).is_loopback
        return self._host == "localhost"

    def knows(self, host: str) -> bool:
        """Says whether a header ``Host`` means this server."""
        if self.embedded:
            return True
        name, _, port = host.rpartition(":")
        if not port.isdigit():
            name, port = host, "80"
        name = name.strip("[]").lower()
        if port != str(self.server_port):
            return False
        if name in ("127.0.0.1", "localhost", "::1", self._host.lower()):
            return True
        # In the network, people type the machine's number or its name.
        if self.is_local():
            return False
        with contextlib.suppress(ValueError):
            return bool(ipaddress.ip_address(name))
        own = socket.gethostname().lower()
        with contextlib.suppress(UnicodeError):  # browsers write a Japanese name as xn--…
            if name == own.encode("idna").decode():
                return True
        return name == own

    def start(self) -> None:
        """Serves in a thread of its own, until :meth:`server_close`."""
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def server_close(self) -> None:
        """Ends the engines and closes the address."""
        self.hall.close()
        super().server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Says nothing of a tab that was closed; all else is a fault."""
        if not isinstance(sys.exc_info()[1], (ConnectionError, TimeoutError, socket.timeout)):
            super().handle_error(request, client_address)


class _Handler(http.server.BaseHTTPRequestHandler):
    """Answers one connection."""

    protocol_version = "HTTP/1.1"
    timeout = _PATIENCE
    server: BoardServer

    def do_GET(self) -> None:
        """Answers what changes nothing."""
        self._answer(self._get)

    def do_POST(self) -> None:
        """Answers what plays, and what computes for long."""
        self._answer(self._post)

    def log_message(self, format: str, *args: Any) -> None:
        """Stays silent: the address holds the token."""

    def version_string(self) -> str:
        """Names the server."""
        return "pydlshogi"

    def _answer(self, answer: Callable[[list[str], dict[str, Any]], None]) -> None:
        try:
            parts, query = self._checked()
            answer(parts, query)
        except Refusal as refusal:
            self.close_connection = True  # a body may not have been read
            self._send_json({"error": str(refusal)}, refusal.status)
        except UserError as error:
            self._send_json({"error": str(error)}, HTTPStatus.BAD_REQUEST)

    def _checked(self) -> tuple[list[str], dict[str, Any]]:
        """Checks where a request comes from; returns the parts of its path and the query."""
        if not self.server.knows(self.headers.get("Host", "")):
            raise Refusal(HTTPStatus.FORBIDDEN, "This host is unknown.")
        try:
            url = urllib.parse.urlsplit(self.path)
        except ValueError:
            raise Refusal(HTTPStatus.NOT_FOUND) from None
        _, token, *parts = url.path.split("/")[:6] + [""]
        if not secrets.compare_digest(token.encode(), self.server.token.encode()):
            raise Refusal(HTTPStatus.NOT_FOUND, "Open the address that pydlshogi has printed.")
        origin = self.headers.get("Origin")
        if origin is not None and not self.server.embedded:
            scheme, _, host = origin.partition("://")
            if scheme != "http" or not self.server.knows(host):
                raise Refusal(HTTPStatus.FORBIDDEN, "This page may not ask.")
        query = {name: values[-1] for name, values in urllib.parse.parse_qs(url.query).items()}
        return [part for part in parts if part], query

    # GET

    def _get(self, parts: list[str], query: dict[str, Any]) -> None:
        hall = self.server.hall
        name = "/".join(parts)
        if name in _FILES:
            path, kind = _FILES[name]
            self._send(path.read_bytes(), f"{kind}; charset=utf-8")
        elif name == "font.woff" and (font := _font()):
            self._send(font, "font/woff")
        elif name == "offer":
            self._send_json(hall.described())
        elif name == "games":
            self._send_json(hall.games())
        elif len(parts) == 3 and parts[0] == "game":
            self._get_of_game(hall.table(parts[1]), parts[2], query)
        else:
            raise Refusal(HTTPStatus.NOT_FOUND)

    def _get_of_game(self, table: Table, what: str, query: dict[str, Any]) -> None:
        if what == "events":
            self._send_events(table)
        elif what in ("kif", "csa"):
            with table.changed:
                text = table.game.kif() if what == "kif" else table.game.csa(table.saved())
            self._send(text.encode("utf-8"), "text/plain; charset=utf-8")
        elif what == "page":
            page = table.page("ja" if query.get("language") == "ja" else "en")
            self._send(page.encode("utf-8"), "text/html; charset=utf-8", policy=_POLICY_OF_GAMES)
        elif what in ("values", "opinion", "planes", "filters"):
            self._send_json(self._thought(table, what, query))
        else:
            raise Refusal(HTTPStatus.NOT_FOUND)

    def _thought(self, table: Table, what: str, query: dict[str, Any]) -> Any:
        """Computes what a model thinks of a game or of a position."""
        thoughts, record = self.server.hall.thoughts, table.record()
        model, last = self._model(query), len(record.moves)
        if what == "values":
            return [one["win"] for one in thoughts.opinions(model, record, range(last + 1))]
        ply = _whole(query, "ply", last)
        if what == "opinion":
            return thoughts.opinions(model, record, [ply])[0]
        if what == "planes":
            return thoughts.planes(model, record.board(ply))
        square = _whole(query, "square", 80) if "square" in query else None
        return thoughts.filters(model, record.board(ply), square)

    def _model(self, values: dict[str, Any]) -> int:
        """Reads the number of a model."""
        return _whole(values, "model", len(self.server.hall.choices.models) - 1)

    def _send_events(self, table: Table) -> None:
        """Sends the game, then each change of it and of the analysis, until the tab closes."""
        self._send(None, "text/event-stream")
        seen = (-1, -1)
        with table.watched():
            while True:
                seen, events = table.news(seen, _PING)
                texts = [f"event: {name}\ndata: {json.dumps(data)}\n\n" for name, data in events]
                self.wfile.write(("".join(texts) or ": alive\n\n").encode())
                self.wfile.flush()
                threading.Event().wait(_PAUSE)  # an analysis may write much

    # POST

    def _post(self, parts: list[str], query: dict[str, Any]) -> None:
        wish, hall = self._body(), self.server.hall
        if parts == ["new"]:
            self._send_json({"name": hall.new_table(wish).name})
        elif len(parts) == 3 and parts[0] == "game":
            self._send_json(self._do(hall.table(parts[1]), parts[2], wish) or {})
        else:
            raise Refusal(HTTPStatus.NOT_FOUND)

    def _do(self, table: Table, what: str, wish: dict[str, Any]) -> Any:
        """Does what the browser asks for at a table."""
        model = self._model(wish)
        ply = _whole(wish, "ply", 1 << 20) if "ply" in wish else None
        at = -1 if ply is None else ply
        if what == "move":
            return table.play(str(wish.get("move", "")), at)
        if what in ("resign", "win"):
            return table.end(what, at)
        if what == "back":
            return table.take_back(at)
        if what == "pause":
            return table.pause(bool(wish.get("paused")))
        if what == "players":
            return table.seat_players(*self.server.hall.players(wish))
        if what == "analyze":
            return table.analyze(ply, model)
        if what == "search":
            seconds = min(float(_whole(wish, "seconds", 1000) or _HINT), _MOST_SEARCH)
            return {"line": table.search(at, seconds, model)}
        if what == "page":
            return table.make_page(model)
        raise Refusal(HTTPStatus.NOT_FOUND)

    def _body(self) -> dict[str, Any]:
        """Reads the JSON object of a request."""
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal():
            raise Refusal(HTTPStatus.LENGTH_REQUIRED, "The request has no length.")
        if len(length) > 9 or int(length) > _MOST_BYTES:
            raise Refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "This is larger than 1 MB.")
        if self.headers.get_content_type() != "application/json":
            raise Refusal(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "The request is not JSON.")
        try:
            wish = json.loads(self.rfile.read(int(length)))
        except (ValueError, RecursionError):
            wish = None
        if not isinstance(wish, dict):
            raise Refusal(HTTPStatus.BAD_REQUEST, "The request is not a JSON object.")
        return wish

    # Answers

    def _send_json(self, data: Any, status: HTTPStatus = HTTPStatus.OK) -> None:
        self._send(json.dumps(data).encode(), "application/json", status)

    def _send(
        self,
        body: bytes | None,
        kind: str,
        status: HTTPStatus = HTTPStatus.OK,
        policy: str = _POLICY,
    ) -> None:
        """Sends an answer; without a body only its head, and the connection ends with it."""
        if body is None:
            self.close_connection = True
        headers = {
            "Content-Type": kind,
            "Connection": "close" if self.close_connection else "keep-alive",
            "Cache-Control": "no-store",
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Content-Security-Policy": policy + ("*" if self.server.embedded else "'none'"),
        }
        if body is not None:
            headers["Content-Length"] = str(len(body))
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body or b"")


def _whole(values: dict[str, Any], name: str, most: int) -> int:
    """Reads a whole number from 0 to ``most``; 0 if it is missing."""
    try:
        number = int(values.get(name, 0))
    except (TypeError, ValueError, OverflowError):
        number = -1
    if not 0 <= number <= most:
        raise GameError(f"{name} must be a number from 0 to {most}.")
    return number


@functools.lru_cache(maxsize=1)
def _font() -> bytes | None:
    """Makes the font with the characters of the page."""
    texts = (path.read_text(encoding="utf-8") for path, _ in _FILES.values())
    return font_subset("".join(sorted(set("".join(texts)))) + "▲△〇〜０１２３４５６７８９成打同　")
