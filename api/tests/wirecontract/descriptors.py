"""Reads the contract as the generated package really has it, in the form of the frozen table.

Goes through the serialised descriptors, because reserved numbers and names show nowhere else. The
marks "frozen" and "+" are promises, not shape, and a descriptor has none; `shape_only` takes them
off the table so that the two can be compared.
"""

from dataclasses import replace

from google.protobuf.descriptor import FileDescriptor
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    ServiceDescriptorProto,
)
from google.protobuf.message import Message as Proto
from google.protobuf.message_factory import GetMessageClass

from bigfleet_api.v1alpha1 import (
    capacity_pb2,
    coordinator_pb2,
    provider_pb2,
    shard_pb2,
    shardread_pb2,
)
from wirecontract.table import Contract, Enum, EnumValue, Field, File, Message, Rpc, Service

PACKAGE = "bigfleet.v1alpha1"
FOLDER = "bigfleet/v1alpha1/"

DESCRIPTORS: dict[str, FileDescriptor] = {
    module.DESCRIPTOR.name.removeprefix(FOLDER): module.DESCRIPTOR
    for module in (capacity_pb2, provider_pb2, shard_pb2, coordinator_pb2, shardread_pb2)
}

REPEATED = FieldDescriptorProto.LABEL_REPEATED


def file_proto(descriptor: FileDescriptor) -> FileDescriptorProto:
    """A file's descriptor with everything in it."""
    proto = FileDescriptorProto()
    descriptor.CopyToProto(proto)
    return proto


def generated_contract() -> Contract:
    """The contract of the generated package."""
    return Contract({name: _file(file_proto(found)) for name, found in DESCRIPTORS.items()})


def shape_only(contract: Contract) -> Contract:
    """The table without its marks."""
    return Contract(
        {
            name: replace(
                file,
                messages={
                    key: replace(
                        item,
                        frozen=False,
                        fields={n: replace(one, added=False) for n, one in item.fields.items()},
                    )
                    for key, item in file.messages.items()
                },
                enums={
                    key: replace(
                        item,
                        frozen=False,
                        values={n: replace(one, added=False) for n, one in item.values.items()},
                    )
                    for key, item in file.enums.items()
                },
                services={
                    key: replace(
                        item,
                        frozen=False,
                        rpcs={n: replace(one, added=False) for n, one in item.rpcs.items()},
                    )
                    for key, item in file.services.items()
                },
            )
            for name, file in contract.files.items()
        }
    )


def message_class(name: str) -> type[Proto]:
    """The generated class of a message."""
    for descriptor in DESCRIPTORS.values():
        if name in descriptor.message_types_by_name:
            return GetMessageClass(descriptor.message_types_by_name[name])
    raise KeyError(name)


def _file(proto: FileDescriptorProto) -> File:
    file = File(
        proto.name.removeprefix(FOLDER),
        frozenset(name.removeprefix(FOLDER) for name in proto.dependency),
    )
    for message in proto.message_type:
        file.messages[message.name] = _message(message)
        for nested in message.enum_type:
            file.enums[f"{message.name}.{nested.name}"] = _enum(nested, f"{message.name}.")
    for enum in proto.enum_type:
        file.enums[enum.name] = _enum(enum, "")
    for service in proto.service:
        file.services[service.name] = _service(service)
    return file


def _message(proto: DescriptorProto) -> Message:
    entries = {nested.name: nested for nested in proto.nested_type if nested.options.map_entry}
    oneofs = [oneof.name for oneof in proto.oneof_decl]
    fields = {item.number: _field(item, entries, oneofs) for item in proto.field}
    numbers = [n for span in proto.reserved_range for n in range(span.start, span.end)]
    reserved = dict(zip(numbers, proto.reserved_name, strict=True))
    return Message(proto.name, False, fields, reserved)


def _field(
    proto: FieldDescriptorProto, entries: dict[str, DescriptorProto], oneofs: list[str]
) -> Field:
    oneof = oneofs[proto.oneof_index] if proto.HasField("oneof_index") else None
    entry = entries.get(proto.type_name.rpartition(".")[2]) if proto.type_name else None
    if entry is not None:
        key, value = entry.field
        return Field(proto.number, proto.name, _type(value), key=_type(key))
    repeated = proto.label == REPEATED
    return Field(proto.number, proto.name, _type(proto), repeated=repeated, oneof=oneof)


def _type(proto: FieldDescriptorProto) -> str:
    if proto.type_name:
        return proto.type_name.removeprefix(f".{PACKAGE}.")
    return FieldDescriptorProto.Type.Name(proto.type).removeprefix("TYPE_").lower()


def _enum(proto: EnumDescriptorProto, prefix: str) -> Enum:
    values = {value.number: EnumValue(value.number, value.name) for value in proto.value}
    return Enum(f"{prefix}{proto.name}", False, values)


def _service(proto: ServiceDescriptorProto) -> Service:
    return Service(
        proto.name,
        False,
        {
            method.name: Rpc(
                method.name,
                method.input_type.removeprefix(f".{PACKAGE}."),
                method.output_type.removeprefix(f".{PACKAGE}."),
                request_stream=method.client_streaming,
                response_stream=method.server_streaming,
            )
            for method in proto.method
        },
    )
