"""A price list on the web: read as a stream or as JSON, in pages, only when it changed.

Reading blocks, so a source calls it through `kit.call`, which also counts, limits and repeats it.
Proxies and authorities come from the environment (`HTTPS_PROXY`, `SSL_CERT_FILE`).
"""

import json
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from http.client import HTTPResponse
from typing import Any, TypeVar
from urllib.parse import urljoin, urlsplit

from bigfleet_providerkit.calls.http_errors import classify_http, pause_of
from bigfleet_providerkit.errors import Retryable, SubstrateError

T = TypeVar("T")
READ_WITHIN_S = 30.0
NOT_MODIFIED = 304
LARGEST_JSON = 64 * 1024 * 1024
MOST_PAGES = 1000


class WebList:
    """One list at one address; remembers which version it read last."""

    def __init__(self, url: str, headers: Mapping[str, str] | None = None) -> None:
        self.url = url
        self._headers = dict(headers or {})
        self._etag = ""

    def read(self, use: Callable[[Iterator[bytes]], T]) -> T | None:
        """What `use` makes of the lines, one in memory at a time; None when nothing changed.

        A version of which `use` makes nothing (an empty value) is read again the next time.
        """
        headers = {**self._headers, **({"If-None-Match": self._etag} if self._etag else {})}
        try:
            with _open(self.url, headers) as answer:
                made = use(iter(answer))
                self._etag = answer.headers.get("ETag", "") if made else ""
                return made
        except urllib.error.HTTPError as error:
            if error.code == NOT_MODIFIED:
                error.close()
                return None
            raise _refusal(self.url, error) from error

    def document(self) -> Any:
        """The whole list as JSON."""
        return _document(self.url, self._headers)

    def documents(self, next_of: Callable[[Any], str | None]) -> Iterator[Any]:
        """The pages of a list; `next_of` finds the address of the page after one.

        Pages of another host are refused: the headers may hold a key.
        """
        url: str | None = self.url
        for _ in range(MOST_PAGES):
            page = _document(url or "", self._headers)
            yield page
            found = next_of(page)
            if not found:
                return
            url = urljoin(url or "", found)
            if urlsplit(url)[:2] != urlsplit(self.url)[:2]:
                raise SubstrateError(f"{self.url} continues at {url}, which is another host")
        raise SubstrateError(f"{self.url} has more than {MOST_PAGES} pages")


def _document(url: str, headers: Mapping[str, str]) -> Any:
    try:
        with _open(url, headers) as answer:
            data = answer.read(LARGEST_JSON + 1)
    except urllib.error.HTTPError as error:
        raise _refusal(url, error) from error
    if len(data) > LARGEST_JSON:
        raise SubstrateError(f"{url} has more than {LARGEST_JSON >> 20} MiB")
    try:
        return json.loads(data)
    except ValueError as error:
        raise SubstrateError(f"{url} is not JSON: {error}") from error


def _open(url: str, headers: Mapping[str, str]) -> HTTPResponse:
    if not url.startswith(("http://", "https://")):
        raise SubstrateError(f"{url!r} is not the address of a list on the web")
    request = urllib.request.Request(url, headers=dict(headers))
    try:
        answer: HTTPResponse = urllib.request.urlopen(request, timeout=READ_WITHIN_S)
    except urllib.error.HTTPError:
        raise
    except OSError as error:
        raise Retryable(f"{url} cannot be reached: {error}") from error
    return answer


def _refusal(url: str, error: urllib.error.HTTPError) -> SubstrateError:
    error.close()
    after = pause_of(dict(error.headers.items()))
    return classify_http(error.code, f"{url}: {error.code} {error.reason}", after=after)
