"""One group's eligibility graph as text for programs that draw: DOT (Graphviz) and GraphML."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any
from xml.etree import ElementTree

from kassign_spark.display import plural, printable

Row = Mapping[str, Any]

_DENSE = "#f4b6a6"
"""Fill of vertices in a dense part."""
_GRAPHML = "http://graphml.graphdrawing.org/xmlns"
_NODE_DATA = {
    "kind": "string",
    "name": "string",
    "topics": "string",
    "weight": "long",
    "part": "int",
    "is_dense": "boolean",
}


def to_dot(
    name: str, vertices: Sequence[Row], edges: Sequence[Row], dense: Collection[tuple[str, str]]
) -> str:
    """Draw members as boxes on the left, classes as ellipses on the right, the dense ones filled.

    Args:
        name: the group's.
        vertices: rows of ``Eligibility.vertices``, of one group.
        edges: rows of ``Eligibility.edges`` between them.
        dense: kind and name of the vertices in a dense part; a class's name is its first topic.

    Returns:
        a graph in Graphviz's language; names are escaped.
    """
    lines = [f"graph {_quote(name)} {{", "  rankdir=LR;", "  node [style=filled fillcolor=white];"]
    for row in vertices:
        label, shape = printable(row["name"]), "box"
        if row["kind"] == "class":
            names = ", ".join(map(printable, row["topics"]))
            label, shape = f"{names}: {plural(row['weight'], 'partition')}", "ellipse"
        fill = f' fillcolor="{_DENSE}"' if (row["kind"], row["name"]) in dense else ""
        lines.append(f"  {row['id']} [shape={shape} label={_quote(label)}{fill}];")
    lines += [f"  {row['src']} -- {row['dst']};" for row in edges]
    return "\n".join([*lines, "}", ""])


def to_graphml(
    name: str, vertices: Sequence[Row], edges: Sequence[Row], dense: Collection[tuple[str, str]]
) -> str:
    """Return the same graph as GraphML (graphml.graphdrawing.org); arguments as in ``to_dot``.

    Returns:
        an XML document; what no XML document may hold is escaped.
    """
    root = ElementTree.Element("graphml", xmlns=_GRAPHML)
    for key, data_type in _NODE_DATA.items():
        ElementTree.SubElement(
            root, "key", {"id": key, "for": "node", "attr.name": key, "attr.type": data_type}
        )
    graph = ElementTree.SubElement(root, "graph", id=printable(name), edgedefault="undirected")
    for row in vertices:
        node = ElementTree.SubElement(graph, "node", id=str(row["id"]))
        topics = ", ".join(row["topics"]) if row["topics"] is not None else None
        is_dense = (row["kind"], row["name"]) in dense
        values = {**row, "topics": topics, "is_dense": str(is_dense).lower()}
        for key in _NODE_DATA:
            if values[key] is not None:
                ElementTree.SubElement(node, "data", key=key).text = printable(str(values[key]))
    for row in edges:
        ElementTree.SubElement(graph, "edge", source=str(row["src"]), target=str(row["dst"]))
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _quote(text: str) -> str:
    escaped = printable(text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
