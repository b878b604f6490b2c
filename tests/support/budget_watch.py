"""How many pods of an app were there at every moment, from the API server's own account of it."""

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from real_fleet import Cluster

PODS = "/api/v1/namespaces/default/pods"


class BudgetWatch:
    """Follows every change of an app's pods and remembers the fewest that ran."""

    def __init__(self, cluster: Cluster, app: str) -> None:
        self._api, self._chosen = cluster.plane.api, f"app={app}"
        self._running: set[str] = set()
        self._version = ""
        self._over = threading.Event()
        self._threads = ThreadPoolExecutor(1, "budget-watch")
        self._following: Future[None] | None = None
        self.fewest = 0
        self.left = 0
        """Pods that went away."""

    def __enter__(self) -> "BudgetWatch":
        found = self._api.get(PODS, labelSelector=self._chosen)
        for pod in found["items"]:
            self._put(pod)
        self.fewest = len(self._running)
        self._version = found["metadata"]["resourceVersion"]
        self._following = self._threads.submit(self._follow)
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._threads.shutdown()
        if self._following is not None:
            self._following.result()

    def _follow(self) -> None:
        while not self._over.is_set():
            for event in self._api.watch(PODS, self._version, labelSelector=self._chosen):
                assert event["type"] != "ERROR", event
                pod = event["object"]
                self._version = pod["metadata"]["resourceVersion"]
                if event["type"] == "DELETED":
                    self._running.discard(pod["metadata"]["uid"])
                    self.left += 1
                else:
                    self._put(pod)
                self.fewest = min(self.fewest, len(self._running))

    def _put(self, pod: dict[str, Any]) -> None:
        uid, going = pod["metadata"]["uid"], "deletionTimestamp" in pod["metadata"]
        if pod["status"].get("phase") == "Running" and not going:
            self._running.add(uid)
        else:
            self._running.discard(uid)
