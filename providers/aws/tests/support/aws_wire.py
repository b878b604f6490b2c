"""The two wire forms of AWS, read and written from the shapes in botocore's own service models.

    EC2 and STS    a form with dotted names comes in, XML goes out
    SSM, SQS, ...  JSON comes in and goes out; the header X-Amz-Target names the operation

A request is read strictly: a parameter that the model does not have, or has in another type, is
an error, as it is in the real service. What an answer holds is checked by writing it.
"""

import functools
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl
from xml.sax.saxutils import escape

import botocore.session
from botocore.model import ListShape, OperationModel, ServiceModel, Shape, StructureShape
from botocore.validate import ParamValidator

from bigfleet_fakecloud import BadRequest, Call, Reply

JSON_TARGETS = {"AmazonSSM": "ssm", "AmazonSQS": "sqs", "AWSPriceListService": "pricing"}
STS_VERSION = "2011-06-15"
Params = dict[str, Any]


@functools.cache
def service(name: str) -> ServiceModel:
    """The model of a service."""
    return botocore.session.get_session().get_service_model(name)


def operation_of(call: Call) -> tuple[str, str]:
    """Service and operation of a request; empty texts for what is neither."""
    target = call.headers.get("x-amz-target", "")
    if target:
        prefix, _, operation = target.partition(".")
        return JSON_TARGETS.get(prefix, ""), operation
    form = dict(parse_qsl(call.body.decode(errors="replace")))
    name = "sts" if form.get("Version") == STS_VERSION else "ec2"
    return (name, form["Action"]) if "Action" in form else ("", "")


def read(call: Call) -> Params:
    """The parameters of a request, checked against the model."""
    name, operation = operation_of(call)
    model = service(name).operation_model(operation)
    if call.headers.get("x-amz-target"):
        params = call.json()
    else:
        form = parse_qsl(call.body.decode(), keep_blank_values=True)
        params = _unfold(dict(form), model)
    problems = ParamValidator().validate(params, model.input_shape)
    if problems.has_errors():
        raise BadRequest(problems.generate_report())
    return params


def reply(call: Call, answer: Mapping[str, Any] | None = None, status: int = 200) -> Reply:
    """An answer in the form of the service that was asked."""
    name, operation = operation_of(call)
    model = service(name).operation_model(operation)
    if call.headers.get("x-amz-target"):
        return Reply(status, dict(answer or {}), {"content-type": "application/x-amz-json-1.1"})
    inner = "".join(_fields(answer or {}, model.output_shape)) if model.output_shape else ""
    if name == "sts":
        inner = f"<{operation}Result>{inner}</{operation}Result>"
    text = f"<{operation}Response><requestId>fake</requestId>{inner}</{operation}Response>"
    return Reply(status, text.encode(), {"content-type": "text/xml;charset=UTF-8"})


def failure(name: str, status: int, code: str, text: str) -> Reply:
    """An error in the form of the service that was asked."""
    if name in ("ec2", "sts"):
        body = (
            f"<Response><Errors><Error><Code>{escape(code)}</Code><Message>{escape(text)}</Message>"
            "</Error></Errors><RequestID>fake</RequestID></Response>"
        )
        return Reply(status, body.encode(), {"content-type": "text/xml;charset=UTF-8"})
    shown = json.dumps({"__type": code, "message": text}).encode()
    return Reply(status, shown, {"content-type": "application/x-amz-json-1.1"})


def _unfold(form: dict[str, str], model: OperationModel) -> Params:
    """Nested parameters from `Filter.1.Value.2=x`."""
    tree: dict[str, Any] = {}
    for key, value in form.items():
        if key in ("Action", "Version"):
            continue
        at = tree
        *path, last = key.split(".")
        for part in path:
            at = at.setdefault(part, {})
            if not isinstance(at, dict):
                raise BadRequest(f"{key} is a value and a structure")
        at[last] = value
    shape = model.input_shape
    if shape is None:
        return {}
    value = _typed(
        tree, shape, model.name, query=model.service_model.metadata["protocol"] == "query"
    )
    assert isinstance(value, dict)
    return value


def _typed(value: Any, shape: Shape, where: str, *, query: bool) -> Any:
    if isinstance(shape, StructureShape):
        names = {_wire_name(key, member, query): key for key, member in shape.members.items()}
        unknown = sorted(set(value) - set(names))
        if unknown:
            raise BadRequest(f"{where} has no parameter {', '.join(unknown)}")
        return {
            names[part]: _typed(inner, shape.members[names[part]], f"{where}.{part}", query=query)
            for part, inner in value.items()
        }
    if isinstance(shape, ListShape):
        if query and isinstance(value, dict):
            value = value.get("member", {})
        return [
            _typed(value[number], shape.member, f"{where}.{number}", query=query)
            for number in sorted(value, key=int)
        ]
    if shape.type_name == "boolean":
        return {"true": True, "false": False}[value]
    if shape.type_name in ("integer", "long"):
        return int(value)
    if shape.type_name == "timestamp":
        return datetime.fromisoformat(value.replace("Z", "+00:00"))
    return value


def _wire_name(key: str, member: Shape, query: bool) -> str:
    if "queryName" in member.serialization:
        return str(member.serialization["queryName"])
    name = str(member.serialization.get("name", key))
    return name if query else name[0].upper() + name[1:]


def _fields(value: Mapping[str, Any], shape: Shape) -> list[str]:
    assert isinstance(shape, StructureShape)
    unknown = sorted(set(value) - set(shape.members))
    assert not unknown, f"{shape.name} has no {unknown}"
    return [
        _element(str(shape.members[key].serialization.get("name", key)), item, shape.members[key])
        for key, item in value.items()
        if item is not None
    ]


def _element(name: str, value: Any, shape: Shape) -> str:
    if isinstance(shape, StructureShape):
        inner = "".join(_fields(value, shape))
    elif isinstance(shape, ListShape):
        item = str(shape.member.serialization.get("name", "item"))
        inner = "".join(_element(item, entry, shape.member) for entry in value)
    elif shape.type_name == "boolean":
        inner = str(value).lower()
    elif shape.type_name == "timestamp":
        moment = datetime.fromtimestamp(value, UTC)
        inner = moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    else:
        inner = escape(str(value))
    return f"<{name}>{inner}</{name}>"
