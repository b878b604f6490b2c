"""Price lists on the web: streamed, in pages, read again only when they changed."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from bigfleet_providerkit import Gone, Retryable, SubstrateError, Unauthorized
from bigfleet_providerkit.prices import web_list
from bigfleet_providerkit.prices.web_list import WebList


class Site(BaseHTTPRequestHandler):
    """A few pages, and the requests for them."""

    requests: list[tuple[str, dict[str, str]]]
    pages: dict[str, tuple[int, dict[str, str], bytes]]

    def do_GET(self) -> None:
        self.requests.append((self.path, dict(self.headers.items())))
        status, headers, body = self.pages.get(self.path, (404, {}, b""))
        if headers.get("ETag") and self.headers.get("If-None-Match") == headers["ETag"]:
            status, body = 304, b""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing on stderr."""


@pytest.fixture
def site() -> Iterator[tuple[type[Site], str]]:
    handler = type("OneSite", (Site,), {"requests": [], "pages": {}})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield handler, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_list_is_streamed_and_read_again_only_when_it_changed(
    site: tuple[type[Site], str],
) -> None:
    handler, base = site
    handler.pages["/list"] = (200, {"ETag": '"1"'}, b"a 1\nb 2\n")
    found = WebList(f"{base}/list", {"X-Key": "secret"})
    assert found.read(lambda lines: [line.split()[0] for line in lines]) == [b"a", b"b"]
    assert found.read(list) is None
    handler.pages["/list"] = (200, {"ETag": '"2"'}, b"c 3\n")
    assert found.read(lambda lines: [] if list(lines) else [1]) == []
    assert found.read(list) == [b"c 3\n"], "of a list that gave nothing no version is remembered"
    assert [headers["X-Key"] for _, headers in handler.requests] == ["secret"] * 4


def test_pages_are_followed_on_the_same_host_only(site: tuple[type[Site], str]) -> None:
    handler, base = site
    handler.pages["/1"] = (200, {}, json.dumps({"items": [1], "next": "/2"}).encode())
    handler.pages["/2"] = (200, {}, json.dumps({"items": [2]}).encode())
    pages = WebList(f"{base}/1").documents(lambda page: page.get("next"))
    assert [page["items"] for page in pages] == [[1], [2]]
    away = json.dumps({"next": "http://127.0.0.1:1/2"}).encode()
    handler.pages["/1"] = (200, {}, away)
    with pytest.raises(SubstrateError, match="which is another host"):
        list(WebList(f"{base}/1").documents(lambda page: page.get("next")))


def test_a_list_without_an_end_is_refused(
    site: tuple[type[Site], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    handler, base = site
    monkeypatch.setattr(web_list, "MOST_PAGES", 3)
    handler.pages["/1"] = (200, {}, json.dumps({"next": "/1"}).encode())
    with pytest.raises(SubstrateError, match="more than 3 pages"):
        list(WebList(f"{base}/1").documents(lambda page: page["next"]))


def test_what_cannot_be_read_is_one_sentence_with_its_class(
    site: tuple[type[Site], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    handler, base = site
    handler.pages["/no"] = (403, {}, b"")
    handler.pages["/busy"] = (503, {"Retry-After": "4"}, b"")
    handler.pages["/odd"] = (200, {}, b"<html>")
    with pytest.raises(Unauthorized, match="/no: 403"):
        WebList(f"{base}/no").document()
    with pytest.raises(Gone, match="/none: 404"):
        WebList(f"{base}/none").read(list)
    with pytest.raises(Retryable, match="/busy: 503") as busy:
        WebList(f"{base}/busy").document()
    assert busy.value.after == 4.0
    with pytest.raises(SubstrateError, match="/odd is not JSON"):
        WebList(f"{base}/odd").document()
    monkeypatch.setattr(web_list, "LARGEST_JSON", 3)
    with pytest.raises(SubstrateError, match="has more than 0 MiB"):
        WebList(f"{base}/odd").document()
    with pytest.raises(SubstrateError, match="is not the address of a list"):
        WebList("file:///etc/passwd").document()
    with pytest.raises(Retryable, match="cannot be reached"):
        WebList("http://127.0.0.1:1/list").document()
