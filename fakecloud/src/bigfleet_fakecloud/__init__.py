"""The shared engine on which a cloud's HTTP API is imitated in tests.

A page of code brings routes, life cycles and the cloud's words; the engine brings everything that
makes a cloud difficult: time, refusals, lag, lost answers. Test-only: nothing that is shipped
imports it.
"""

from bigfleet_fakecloud.call import Call, Reply, text_of, texts_of
from bigfleet_fakecloud.cloud import Cloud, Seen
from bigfleet_fakecloud.collection import Collection, Resource
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
from bigfleet_fakecloud.faults import Effect, Moment, Rule
from bigfleet_fakecloud.guests import Guests, Outcome
from bigfleet_fakecloud.life import Life, Then, Verb
from bigfleet_fakecloud.operations import Operation, operation_headers
from bigfleet_fakecloud.paging import (
    NumberedPage,
    Page,
    link_header,
    next_link,
    numbered_page,
    offset_page,
    page,
)
from bigfleet_fakecloud.serve import main, serving
from bigfleet_fakecloud.timeline import RealClock, VirtualClock
from bigfleet_fakecloud.tls import TestAuthority

__all__ = [
    "BadRequest",
    "Call",
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
    "Seen",
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
