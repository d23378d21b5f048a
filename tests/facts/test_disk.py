"""Local disk of nodes, which pods ask for as ephemeral-storage."""

from plimsoll.facts.gpus import GIB
from plimsoll.facts.observe import observe
from tests.facts.cluster import cpu_node, node, pod


def only(inventory):
    (pool,) = inventory.pools
    return pool


def on_disk(made, gib):
    made["status"]["allocatable"]["ephemeral-storage"] = f"{gib}Gi"
    return made


def test_the_emptiest_disk_among_nodes_with_free_devices_tells_how_much_a_pod_may_ask_for():
    nodes = [on_disk(node("n1"), 900), on_disk(node("n2"), 700), on_disk(node("n3"), 2000)]
    pods = [
        pod("a", requests={"ephemeral-storage": "400Gi"}),
        pod("b", on="n2", requests={"ephemeral-storage": "100Gi"}),
        pod("full", on="n3", requests={"nvidia.com/gpu": "8"}),
    ]
    pool = only(observe(nodes, pods))
    assert (pool.host_disk_bytes, pool.host_free_disk_bytes) == (2000 * GIB, 600 * GIB)


def test_a_disk_that_one_node_does_not_tell_of_is_not_known_and_never_taken_as_none():
    pool = only(observe([on_disk(node("n1"), 900), node("n2")], []))
    assert (pool.host_disk_bytes, pool.host_free_disk_bytes) == (None, None)


def test_what_is_left_of_a_disk_is_not_known_on_hosts_whose_pods_hold_no_devices():
    """The deployment's own pods fill it as others' do, and an edit of the only replica would wait for itself."""
    own = pod("own", on="c1", requests={"cpu": "8", "ephemeral-storage": "60Gi"}, deployment="chat")
    pool = only(observe([on_disk(cpu_node("c1"), 100)], [own]))
    assert (pool.host_disk_bytes, pool.host_free_disk_bytes) == (100 * GIB, None)


def test_disks_divide_no_pool_and_change_no_key():
    plain = only(observe([node("n1"), node("n2")], []))
    assert only(observe([on_disk(node("n1"), 900), on_disk(node("n2"), 3)], [])).key == plain.key
