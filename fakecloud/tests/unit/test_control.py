"""The control API refuses what makes no sense, and says why."""

import json

import pytest

from bigfleet_fakecloud import Call, VirtualClock
from bigfleet_fakecloud.examples.tiny import tiny
from bigfleet_fakecloud.http.control import Control


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/_control/advance", {"seconds": "ten"}, 400),
        ("POST", "/_control/advance", {"seconds": -1}, 400),
        ("PATCH", "/_control/delays", {"speed": 1}, 400),
        ("PUT", "/_control/stock", {"key": "small", "limit": 1}, 400),
        ("PUT", "/_control/quota", {"key": ["cpus"], "limit": 1.5}, 400),
        ("PUT", "/_control/throttle", {"op": "*", "rate": 0}, 400),
        ("POST", "/_control/faults", {"effect": "explode"}, 400),
        ("GET", "/_control/faults/one", None, 400),
        ("GET", "/_control/resources/cats", None, 404),
        ("POST", "/_control/resources/hosts/h-9/stop", None, 404),
        ("GET", "/_control/everything", None, 404),
    ],
)
def test_the_control_api_says_what_was_wrong(
    method: str, path: str, body: object, status: int
) -> None:
    control = Control(tiny(clock=VirtualClock()))
    content = b"" if body is None else json.dumps(body).encode()
    reply = control.answer(Call(method, path, body=content))
    assert reply.status == status
    assert isinstance(reply.body, dict)
    assert reply.body["error"]
