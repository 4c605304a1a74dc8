"""The dependency graph: order, ways, distances, also where recursion would not reach."""

from hypothesis import given
from hypothesis import strategies as st

from inbox_orch.orch.runs import graph

DEEP = 20_000


def chain(length: int) -> dict[str, list[str]]:
    """Each waits for the one before."""
    return {str(i): [str(i - 1)] for i in range(1, length)}


@st.composite
def acyclic(draw) -> tuple[list[str], dict[str, list[str]]]:
    """Nodes in any order, with edges from later to earlier names."""
    size = draw(st.integers(1, 12))
    pairs = st.tuples(st.integers(0, size - 1), st.integers(0, size - 1))
    edges: dict[str, list[str]] = {}
    for a, b in draw(st.sets(pairs, max_size=30)):
        if a > b:
            edges.setdefault(str(a), []).append(str(b))
    return draw(st.permutations([str(i) for i in range(size)])), edges


@given(acyclic())
def test_everything_comes_after_what_it_depends_on(drawn):
    nodes, edges = drawn
    order = graph.ordered(nodes, edges)

    assert sorted(order) == sorted(nodes)
    position = {node: i for i, node in enumerate(order)}
    assert all(position[u] < position[n] for n in edges for u in edges[n])


@given(acyclic())
def test_ancestors_are_those_that_a_way_leads_to(drawn):
    nodes, edges = drawn
    for start in nodes:
        expected = {n for n in nodes if n != start and graph.path(edges, start, n) is not None}
        assert graph.ancestors(edges, start) == expected


@given(acyclic())
def test_the_remaining_length_is_that_of_the_longest_chain(drawn):
    nodes, edges = drawn
    followers = {n: [m for m in nodes if n in edges.get(m, ())] for n in nodes}

    def longest(node: str) -> int:
        return 1 + max((longest(f) for f in followers[node]), default=0)

    assert graph.remaining_lengths(nodes, edges) == {n: longest(n) for n in nodes}


def test_a_way_is_a_shortest_one_with_both_ends():
    edges = {"d": ["c", "b"], "c": ["b"], "b": ["a"]}

    assert graph.path(edges, "d", "a") == ["d", "b", "a"]
    assert graph.path(edges, "a", "d") is None
    assert graph.path(edges, "a", "a") == ["a"]


def test_without_edges_the_given_order_stays():
    assert graph.ordered(["b", "c", "a"], {}) == ["b", "c", "a"]


def test_a_chain_of_20000_needs_no_deep_stack():
    edges, nodes = chain(DEEP), [str(i) for i in range(DEEP)]
    last = nodes[-1]

    assert graph.ordered(nodes[::-1], edges) == nodes
    assert len(graph.ancestors(edges, last)) == DEEP - 1
    assert graph.remaining_lengths(nodes, edges)["0"] == DEEP
    way = graph.path(edges, last, "0")
    assert way is not None
    assert len(way) == DEEP


def test_edges_out_of_the_given_nodes_do_not_hold_anything_up():
    assert graph.ordered(["a"], {"a": ["elsewhere"]}) == ["a"]


def test_a_graph_without_a_cycle_has_none_and_one_with_a_cycle_is_told_from_its_first_node():
    assert graph.cycle([], {}) is None
    assert graph.cycle(["a", "c", "b"], {"c": ["b", "a"], "b": ["a"]}) is None
    assert graph.cycle(["b", "a", "c", "d"], {"b": ["a"], "c": ["d"], "d": ["c"]}) == [*"cdc"]
    assert graph.cycle(["d", "a", "b"], {"d": ["a"], "a": ["b"], "b": ["a"]}) == ["a", "b", "a"]
    assert graph.cycle(["a"], {"a": ["b"], "b": ["a"]}) is None, "only these nodes count"
