"""Drawings of one group: read back by readers of the formats' own."""

import re
import shutil
import subprocess
from xml.etree import ElementTree

import pytest

from kassign_spark.graph.drawing import to_dot, to_graphml

_VERTICES = [
    {"id": 64, "kind": "member", "name": 'a"\\b', "topics": None, "weight": None, "part": 0},
    {"id": 65, "kind": "class", "name": "t0", "topics": ["t0", "t1"], "weight": 1200, "part": 0},
    {"id": 66, "kind": "member", "name": "<x>\x1b[0m\n", "topics": None, "weight": None, "part": 0},
    {"id": 68, "kind": "member", "name": "idle", "topics": None, "weight": None, "part": None},
]
_EDGES = [{"src": 64, "dst": 65, "weight": 1200}, {"src": 66, "dst": 65, "weight": 1200}]
_DENSE = {("class", "t0"), ("member", "t0")}


def test_dot() -> None:
    text = to_dot('the "group"', _VERTICES, _EDGES, _DENSE)
    assert text.splitlines() == [
        'graph "the \\"group\\"" {',
        "  rankdir=LR;",
        "  node [style=filled fillcolor=white];",
        '  64 [shape=box label="a\\"\\\\b"];',
        '  65 [shape=ellipse label="t0, t1: 1,200 partitions" fillcolor="#f4b6a6"];',
        '  66 [shape=box label="<x>\\\\x1b[0m\\\\n"];',
        '  68 [shape=box label="idle"];',
        "  64 -- 65;",
        "  66 -- 65;",
        "}",
    ]


def test_graphviz_takes_it() -> None:
    if shutil.which("dot") is None:
        pytest.skip("Graphviz is not installed")
    text = to_dot('the "group"', _VERTICES, _EDGES, _DENSE)
    drawn = subprocess.run(["dot", "-Tplain"], input=text, capture_output=True, text=True)
    assert (drawn.returncode, drawn.stderr) == (0, "")
    assert len(re.findall("^node", drawn.stdout, re.MULTILINE)) == 4


def test_graphml() -> None:
    root = ElementTree.fromstring(to_graphml("g", _VERTICES, _EDGES, _DENSE))
    space = {"g": "http://graphml.graphdrawing.org/xmlns"}
    keys = {key.get("id") for key in root.findall("g:key", space)}
    nodes = {
        node.get("id"): {data.get("key"): data.text for data in node}
        for node in root.findall("g:graph/g:node", space)
    }
    assert {key for node in nodes.values() for key in node} <= keys
    assert nodes["65"] == {
        "kind": "class", "name": "t0", "topics": "t0, t1", "weight": "1200", "part": "0",
        "is_dense": "true",
    }  # fmt: skip
    assert nodes["66"]["name"] == "<x>\\x1b[0m\\n"
    assert nodes["68"] == {"kind": "member", "name": "idle", "is_dense": "false"}
    edges = [(e.get("source"), e.get("target")) for e in root.findall("g:graph/g:edge", space)]
    assert edges == [("64", "65"), ("66", "65")]
