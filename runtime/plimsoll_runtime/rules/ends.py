"""Processes that were waited for too long, or are gone; what only follows from something else comes last."""

from __future__ import annotations

from plimsoll_runtime.remedies import MORE_HOST_MEMORY
from plimsoll_runtime.rules.rule import START, rule

ENDS = (
    rule(
        "StartTimeout",
        r"Timed out waiting for engine|Did not receive response from front-end process",
        "the engine gave itself up: its workers were not ready in time",
        "a larger VLLM_ENGINE_READY_TIMEOUT_S in spec.engine.env together with spec.rollout.deadlineSeconds, or faster storage",
    ),
    rule(
        "StartTimeout",
        r"The current node timed out during startup",
        "Ray gave itself up: its own processes were not there in time",
        "more cores for the pods, or a node with less on it: it waits 30 seconds",
    ),
    rule(
        "StartTimeout",
        r"No node info found matching attributes|Failed to connect to Ray cluster",
        "the engine finds no node of Ray in its own pod: {line}",
        "kubectl logs --previous shows what became of Ray there; RAY_ADDRESS and VLLM_HOST_IP are not for spec.engine.env",
        START,
    ),
    rule(
        "StartTimeout",
        r"Cannot provide a placement group|waiting for clients\. \d+/\d+ clients joined",
        "not all of this replica came in time, with the GPUs that its engine needs: {line}",
        "kubectl get pods shows which one has not started; let all ports pass between them (NetworkPolicy)",
        START,
    ),
    rule(
        "HostOutOfMemory",
        r"Cannot allocate memory|(?:^|[\])] )MemoryError$|MemoryError: Unable to allocate|std::bad_alloc|DefaultCPUAllocator: can't allocate memory",
        "the machine's memory ran out: {line}",
        MORE_HOST_MEMORY,
    ),
    rule(
        "Hang",
        r"RPC call to (?P<what>\w+) timed out",
        "the engine's workers did not end a step ({what}) in the time that it gives them",
        "it is started again; if that repeats, look for a stuck worker or collective: kubectl logs --previous",
    ),
    rule(
        "WorkerLost",
        r"Worker proc (?P<what>\S+) died unexpectedly(?: \(exit code: -(?P<signal>\d+)\))?"
        r"|RayWorkerProc rank=\S+ died|ActorDiedError",
        "a worker of the engine was lost: {line}",
        "kubectl logs --previous shows its last lines; look for faults of the GPU and for memory pressure on the node",
    ),
    rule(
        "WorkerLost",
        r"BEGIN (?P<what>\w+)\.(?:out|err) tail \(exit code\(s\)=(?P<ended>\d+|-\d+ \(signal (?P<signal>\d+)\))\)",
        "a process of Ray ended in this pod: {what}, exit code {ended}",
        "kubectl logs --previous shows its last lines; look for memory pressure on the node",
    ),
    rule(
        "WorkerLost",
        r"Some Ray subprocesses exited unexpectedly",
        "a process of Ray ended in this pod",
        "kubectl logs --previous shows which",
    ),
    rule(
        "WorkerLost",
        r"Engine core proc(?:ess)? \S+ died unexpectedly|EngineDeadError",
        "the engine's core process ended{cause}",
        "kubectl logs --previous shows its last lines; look for faults of the GPU, for memory pressure on the node and for who else"
        " kills there (kubectl describe pod and node, dmesg)",
    ),
)
