"""A certificate per cluster: each stands for its own session."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import grpc.aio
import pytest
import trustme

from bigfleet.wire.errors import TlsFilesError
from bigfleet_api.v1alpha1 import shard_pb2 as pb
from bigfleet_api.v1alpha1 import shard_pb2_grpc as rpc
from bigfleet_lab.simcluster.lines import credentials_from
from bigfleet_lab.simcluster.run import RunOptions, simulate

Context = grpc.aio.ServicerContext[pb.OperatorMessage, pb.ShardMessage]


class Strict(rpc.ShardServicer):
    """Takes a cluster only under its own name."""

    async def Session(  # noqa: N802 - the contract's name
        self, frames: AsyncIterator[pb.OperatorMessage], context: Context
    ) -> AsyncIterator[pb.ShardMessage]:
        names = context.auth_context().get("x509_subject_alternative_name", [])
        async for frame in frames:
            if frame.HasField("hello"):
                if frame.hello.cluster_id.encode() not in names:
                    await context.abort(grpc.StatusCode.PERMISSION_DENIED, "another")
                yield pb.ShardMessage(ack=pb.Acknowledgement(echo="hello"))
            elif frame.HasField("rollup"):
                yield pb.ShardMessage(ack=pb.Acknowledgement(echo="rollup"))


def install(folder: Path, ca: trustme.CA, cluster: str) -> None:
    leaf = ca.issue_cert(cluster)
    leaf.cert_chain_pems[0].write_to_path(folder / f"{cluster}.pem")
    leaf.private_key_pem.write_to_path(folder / f"{cluster}.key")


async def test_each_cluster_shows_its_own_certificate(tmp_path: Path) -> None:
    ca = trustme.CA()
    ca.cert_pem.write_to_path(tmp_path / "ca.pem")
    for number in range(2):
        install(tmp_path, ca, f"sim-{number:04d}")
    leaf = ca.issue_cert("127.0.0.1")
    credentials = grpc.ssl_server_credentials(
        [(leaf.private_key_pem.bytes(), leaf.cert_chain_pems[0].bytes())],
        ca.cert_pem.bytes(),
        require_client_auth=True,
    )
    server = grpc.aio.server()
    rpc.add_ShardServicer_to_server(Strict(), server)
    port = server.add_secure_port("127.0.0.1:0", credentials)
    await server.start()
    options = RunOptions(
        f"127.0.0.1:{port}",
        clusters=2,
        rows=1,
        interval_seconds=0.1,
        duration_seconds=2.0,
        tls_cert=str(tmp_path / "{cluster}.pem"),
        tls_key=str(tmp_path / "{cluster}.key"),
        tls_ca=str(tmp_path / "ca.pem"),
    )
    async with asyncio.timeout(30):
        summary = await simulate(options, lambda line: None)
    await server.stop(None)
    assert summary.ok, summary.document()


def test_a_part_of_the_files_is_refused() -> None:
    with pytest.raises(TlsFilesError, match="--tls-key"):
        credentials_from("cert.pem", None, "ca.pem")
    read, per_cluster = credentials_from(None, None, None)
    assert read("c") is None
    assert not per_cluster
