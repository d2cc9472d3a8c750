"""YAML read with suspicion: plain values only, each with its line; no aliases, no doubled keys, no depth."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import yaml

from gpuherd.discovery.complaints import quoted
from gpuherd.model.errors import Misconfigured

__all__ = [
    "Mapping",
    "Scalar",
    "Sequence",
    "YamlNode",
    "is_null",
    "line_of",
    "load_yaml",
    "pairs",
    "telling_faults",
    "text_of",
]

# The parser written in C is twenty times faster; both give the same nodes.
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MOST_DEPTH = 40

YamlNode = yaml.Node
Mapping = yaml.MappingNode
Scalar = yaml.ScalarNode
Sequence = yaml.SequenceNode


def load_yaml(text: str, file: str) -> YamlNode | None:
    """Give the document's root with its lines, None if it is empty. ``Misconfigured`` with line and remedy.

    Scalars stay text as written: YAML would read the host 10.10 as 10.1 and 12:30 as 750.
    """
    with telling_faults(file):
        _check(text, file)
        root: YamlNode | None = yaml.compose(text, Loader=_Loader)
        return root


@contextmanager
def telling_faults(file: str) -> Iterator[None]:
    """Turn the parser's errors into ``Misconfigured`` with line and remedy."""
    try:
        yield
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{file}:{mark.line + 1}" if mark else file
        problem = " ".join(str(error.problem or error.context or "unreadable").split())
        raise Misconfigured(f"{place}: is not valid YAML: {quoted(problem)[1:-1]}; fix this line") from error
    except yaml.YAMLError as error:
        raise Misconfigured(
            f"{file}: is not valid YAML: it contains characters that YAML forbids; remove them"
        ) from error


def pairs(node: YamlNode, file: str, what: str) -> list[tuple[str, int, YamlNode]]:
    """Give a mapping's keys with line and value; an empty value counts as an empty mapping."""
    if is_null(node):
        return []
    if not isinstance(node, Mapping):
        raise Misconfigured(f"{file}:{line_of(node)}: {what} must be keys with values; write key: value")
    seen: dict[str, int] = {}
    found = []
    for key_node, value in node.value:
        line = line_of(key_node)
        key = text_of(key_node)
        if key is None:
            raise Misconfigured(f"{file}:{line}: a key of {what} must be a word; write key: value")
        if key in seen:
            raise Misconfigured(
                f"{file}:{line}: {quoted(key)} is already in line {seen[key]}; keep one of them"
            )
        seen[key] = line
        found.append((key, line, value))
    return found


def text_of(node: YamlNode) -> str | None:
    """Give a scalar as it is written; None for lists and mappings."""
    return str(node.value) if isinstance(node, Scalar) else None


def is_null(node: YamlNode) -> bool:
    """Tell whether nothing stands there."""
    return isinstance(node, Scalar) and node.tag == "tag:yaml.org,2002:null"


def line_of(node: YamlNode) -> int:
    """Give the line on which the node begins."""
    return int(node.start_mark.line) + 1


def _check(text: str, file: str) -> None:
    """Refuse, before anything is built, what could grow or crash: aliases, depth, further documents."""
    depth = documents = 0
    for event in yaml.parse(text, Loader=_Loader):
        line = event.start_mark.line + 1 if event.start_mark else 1
        if isinstance(event, yaml.AliasEvent):
            raise Misconfigured(f"{file}:{line}: aliases (*name) are not supported; write the value out")
        if isinstance(event, yaml.DocumentStartEvent):
            documents += 1
            if documents > 1:
                raise Misconfigured(f"{file}:{line}: there is a second document; keep one")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > _MOST_DEPTH:
                raise Misconfigured(
                    f"{file}:{line}: nested more than {_MOST_DEPTH} levels deep; this is not a list of hosts"
                )
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
