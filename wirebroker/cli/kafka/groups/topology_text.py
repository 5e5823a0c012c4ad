"""Text of a streams group's topology, as Kafka Streams prints it.

Source: Kafka's TopologyDescriptionFormatter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

_SOURCE, _SINK = 1, 3
_INDENT: Final = "    "


def topology_text(topology: Any) -> str:
    """Return the text of a StreamsGroupDescribe response's topology description."""
    parts = ["Topologies:\n"]
    for subtopology in topology.subtopologies:
        parts.append(f"   Sub-topology: {subtopology.subtopology_id}\n")
        parts += _node_lines(subtopology.nodes)
    first = len(topology.subtopologies)
    for number, store in enumerate(topology.global_stores, first):
        parts.append(f"   Sub-topology: {number} for global store (will not generate tasks)\n")
        parts += _node_lines([store.source, store.processor])
    return "".join(parts)


def _node_lines(nodes: Iterable[Any]) -> list[str]:
    nodes = list(nodes)
    predecessors: dict[str, list[str]] = {node.name: [] for node in nodes}
    for node in nodes:
        for successor in node.successors:
            predecessors.setdefault(successor, []).append(node.name)
    return [f"{_INDENT}{_node(node, predecessors[node.name])}\n" for node in nodes] + ["\n"]


def _node(node: Any, predecessors: Iterable[str]) -> str:
    after = f"\n      --> {_names(node.successors)}"
    before = f"\n      <-- {_names(predecessors)}"
    if node.node_type == _SOURCE:
        return f"Source: {node.name} (topics: {_set(node.source_topics)}){after}"
    if node.node_type == _SINK:
        topic = "null" if node.sink_topic is None else node.sink_topic
        return f"Sink: {node.name} (topic: {topic}){before}"
    return f"Processor: {node.name} (stores: {_set(node.stores)}){after}{before}"


def _set(names: Iterable[str]) -> str:
    return f"[{', '.join(sorted(set(names)))}]"


def _names(names: Iterable[str]) -> str:
    return ", ".join(sorted(set(names))) or "none"
