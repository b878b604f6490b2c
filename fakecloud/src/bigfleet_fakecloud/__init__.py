"""The shared engine on which a cloud's HTTP API is imitated in tests.

A page of code brings routes, life cycles and the cloud's words; the engine brings everything that
makes a cloud difficult: time, refusals, lag, lost answers. Test-only: nothing that is shipped
imports it.

    cloud        routes a call through limits, faults and handlers
    http         calls, answers, paging, the control API, serving with TLS
    state        collections, life cycles, operations, tokens, clock
    behaviour    faults, delays, limits, background services
    guests       hosts that run shells, SSH servers and agents
    examples     a tiny cloud that shows the engine
"""

from bigfleet_fakecloud.behaviour.faults import Effect, Moment, Rule
from bigfleet_fakecloud.cloud import CallRecord, Cloud
from bigfleet_fakecloud.errors import (
    BadRequest,
    Conflict,
    FakeCloudError,
    Injected,
    NotFound,
    OutOfStock,
    Problem,
    QuotaExceeded,
    ScriptError,
    Throttled,
    TokenReused,
)
from bigfleet_fakecloud.guests import Guests, Outcome
from bigfleet_fakecloud.http.call import Call, Reply, text_of, texts_of
from bigfleet_fakecloud.http.paging import (
    NumberedPage,
    Page,
    link_header,
    next_link,
    numbered_page,
    offset_page,
    page,
)
from bigfleet_fakecloud.http.serve import main, serving
from bigfleet_fakecloud.http.tls import TestAuthority
from bigfleet_fakecloud.state.collection import Collection, Resource
from bigfleet_fakecloud.state.life import Life, Then, Verb
from bigfleet_fakecloud.state.operations import Operation, operation_headers
from bigfleet_fakecloud.state.timeline import RealClock, VirtualClock

__all__ = [
    "BadRequest",
    "Call",
    "CallRecord",
    "Cloud",
    "Collection",
    "Conflict",
    "Effect",
    "FakeCloudError",
    "Guests",
    "Injected",
    "Life",
    "Moment",
    "NotFound",
    "NumberedPage",
    "Operation",
    "OutOfStock",
    "Outcome",
    "Page",
    "Problem",
    "QuotaExceeded",
    "RealClock",
    "Reply",
    "Resource",
    "Rule",
    "ScriptError",
    "TestAuthority",
    "Then",
    "Throttled",
    "TokenReused",
    "Verb",
    "VirtualClock",
    "link_header",
    "main",
    "next_link",
    "numbered_page",
    "offset_page",
    "operation_headers",
    "page",
    "serving",
    "text_of",
    "texts_of",
]
