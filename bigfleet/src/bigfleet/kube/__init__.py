"""The small Kubernetes client: what the operator and the pod controller need of an API server.

    config = load(kubeconfig)                       # a file, the Pod's own, or the user's
    async with KubeClient.connect(config, qps=50) as client:
        pods = Informer(client, PODS.read_as(DemandPod))
        pods.on_change(queue.put)                   # every change, once, in order
        task = asyncio.create_task(pods.run())
        await pods.wait_synced()
        await client.apply(CAPACITY_REQUESTS, name, body, namespace, manager="bigfleet")

    config    where the API server is and who we are;  exec_login  helpers that log a person in
    transport one request: rate, retries, deadline, typed errors
    client    typed calls;  decoding  into partial structs
    reader    get, list in pages, watch;  list_watch  list, then watch, without end
    informer  keeps a copy of one kind and reports every change
    lease     leader election, and what processes that take part share
    events    what `kubectl describe` shows
    objects   structs and names of Kubernetes' kinds;  fleet  of our own
    podspec   what a Pod asks of a node, as the scheduler counts
    ports     time, from outside

One event loop, nothing that blocks. Knows nothing of shards, roll-ups or machines.
"""

from bigfleet.kube.client import Body, Eviction, KubeClient
from bigfleet.kube.config import ClusterConfig, from_kubeconfig, in_cluster, load
from bigfleet.kube.decoding import BadObject, EventKind, ListPage, WatchEvent
from bigfleet.kube.errors import (
    AlreadyExistsError,
    ApiBadRequestError,
    ApiError,
    ConflictError,
    DeadlineError,
    DecodeError,
    ForbiddenError,
    GoneError,
    InvalidError,
    KubeConfigError,
    KubeError,
    NotFoundError,
    ServerError,
    ThrottledError,
    UnauthorizedError,
    UnreachableError,
)
from bigfleet.kube.events import EventRecorder, ObjectRef
from bigfleet.kube.informer import Change, ChangeKind, Handler, Informer
from bigfleet.kube.lease import PATIENT, LeaderElection, LeaseTimes, Readiness
from bigfleet.kube.objects import Meta, Object, OwnerReference, Partial, Resource, key_of
from bigfleet.kube.ports import KubeClock, KubeSystemClock, Observer

__all__ = [
    "PATIENT",
    "AlreadyExistsError",
    "ApiBadRequestError",
    "ApiError",
    "BadObject",
    "Body",
    "Change",
    "ChangeKind",
    "ClusterConfig",
    "ConflictError",
    "DeadlineError",
    "DecodeError",
    "EventKind",
    "EventRecorder",
    "Eviction",
    "ForbiddenError",
    "GoneError",
    "Handler",
    "Informer",
    "InvalidError",
    "KubeClient",
    "KubeClock",
    "KubeConfigError",
    "KubeError",
    "KubeSystemClock",
    "LeaderElection",
    "LeaseTimes",
    "ListPage",
    "Meta",
    "NotFoundError",
    "Object",
    "ObjectRef",
    "Observer",
    "OwnerReference",
    "Partial",
    "Readiness",
    "Resource",
    "ServerError",
    "ThrottledError",
    "UnauthorizedError",
    "UnreachableError",
    "WatchEvent",
    "from_kubeconfig",
    "in_cluster",
    "key_of",
    "load",
]
