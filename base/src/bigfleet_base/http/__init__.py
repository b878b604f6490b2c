"""The HTTP server of every process: metrics, probes and JSON routes on one port.

The server runs on a thread of its own, so it answers while the process's event loop is busy, and
a client cannot take it down:

    listener --accept--> ConnectionTable --at most N--> HttpConnection --> route --> Response
               when full: close the connection that has     one request at a time, parsed by h11,
               waited longest for its request          deadline for head, body and reading

A path has a `Route`. Its handler is a function that runs on a worker thread, or a coroutine
function that runs on the event loop of the component that made the server. A route that is
`immediate`, as probes are, runs on the server's own thread and never waits for a worker.

    messages       Request, Response, Route
    limits         how many connections, how long each step may take
    connections    which connections are open, and which one makes room for the next
    connection     the protocol of one connection
    sockets        addresses and sockets   sockets
    pages          /metrics, /healthz and /readyz as routes
    server         HttpServer: the thread, the accept loop, start and stop
"""

from bigfleet_base.http.limits import HttpLimits
from bigfleet_base.http.messages import Request, Response, Route
from bigfleet_base.http.pages import page_routes
from bigfleet_base.http.server import HttpServer
from bigfleet_base.http.sockets import HttpError

__all__ = [
    "HttpError",
    "HttpLimits",
    "HttpServer",
    "Request",
    "Response",
    "Route",
    "page_routes",
]
