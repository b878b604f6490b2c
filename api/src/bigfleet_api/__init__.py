"""The contract between BigFleet's parts, as Python.

Holds what is generated from the protocol definitions and nothing written by hand beyond this
file, so that a program that speaks the protocol depends on the protocol alone. Messages and
services are modules of `bigfleet_api.v1alpha1`, one pair per definition file:

    from bigfleet_api.v1alpha1 import provider_pb2, provider_pb2_grpc

Importing the package itself costs nothing: it loads neither protobuf nor gRPC. Transport options,
validation and conversion to values are left to those who use the messages.
"""

__version__ = "0.1.0"
