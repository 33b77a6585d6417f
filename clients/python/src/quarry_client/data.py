"""Types of an application's own data: what an extraction takes from a text, and what a run returns."""

from __future__ import annotations

import dataclasses
import sys
import typing
from typing import Any, Dict, List, Literal, Mapping, Type, TypeVar, Union

from .types import AutomationRun, Extraction

T = TypeVar("T")


def json_schema(shape: type) -> Dict[str, Any]:
    """The JSON Schema of a class: a TypedDict, a dataclass, or one with `model_json_schema`, as pydantic's have.

    Members are text, numbers, booleans, None, literals, lists, dicts, unions, and other such classes.
    """
    own = getattr(shape, "model_json_schema", None)
    if own is not None:
        return dict(own())
    hints = typing.get_type_hints(shape)
    if dataclasses.is_dataclass(shape):
        missing = dataclasses.MISSING
        fields = dataclasses.fields(shape)
        required = [each.name for each in fields if each.default is missing and each.default_factory is missing]
    elif hasattr(shape, "__required_keys__"):
        required = [name for name in hints if name in shape.__required_keys__]
    else:
        raise TypeError(f"{shape.__name__} is no TypedDict, no dataclass, and has no model_json_schema.")
    properties = {name: _schema_of(hint) for name, hint in hints.items()}
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def data_of(extraction: Extraction, shape: Type[T]) -> List[T]:
    """The data of an extraction's outputs, as the class whose `json_schema` the extraction had."""
    return [_shaped(output["data"], shape) for output in extraction.get("outputs", []) if "data" in output]


def result_of(run: AutomationRun, shape: Type[T]) -> T:
    """The result of a completed run as a class."""
    if run["status"] != "completed":
        raise ValueError(f"The run is {run['status']}: it has no result.")
    return _shaped(run.get("result"), shape)


def _shaped(value: Any, shape: Type[T]) -> T:
    validate = getattr(shape, "model_validate", None)
    if validate is not None:
        model: T = validate(value)
        return model
    if not dataclasses.is_dataclass(shape):
        # A TypedDict is the dict itself.
        same: T = value
        return same
    hints = typing.get_type_hints(shape)
    members = {each.name: _inner(value[each.name], hints[each.name]) for each in dataclasses.fields(shape) if each.name in value}
    whole: T = shape(**members)
    return whole


def _inner(value: Any, hint: Any) -> Any:
    """A member of a dataclass, whose own members may be dataclasses."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if isinstance(hint, type) and dataclasses.is_dataclass(hint) and isinstance(value, dict):
        return _shaped(value, hint)
    if origin is list and isinstance(value, list):
        return [_inner(each, arguments[0]) for each in value]
    if origin is Union:
        fitting = [each for each in arguments if dataclasses.is_dataclass(each)]
        return _inner(value, fitting[0]) if len(fitting) == 1 else value
    return value


_PLAIN: Mapping[Any, Dict[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    type(None): {"type": "null"},
    Any: {},
}


def _schema_of(hint: Any) -> Dict[str, Any]:
    if hint in _PLAIN:
        return dict(_PLAIN[hint])
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin is list:
        return {"type": "array", "items": _schema_of(arguments[0])}
    if origin is dict:
        return {"type": "object", "additionalProperties": _schema_of(arguments[1])}
    if origin is Union or _is_new_union(origin):
        return {"anyOf": [_schema_of(each) for each in arguments]}
    if isinstance(hint, type):
        return json_schema(hint)
    raise TypeError(f"{hint} has no JSON Schema here.")


def _is_new_union(origin: Any) -> bool:
    if sys.version_info < (3, 10):
        return False
    import types as python_types

    return origin is python_types.UnionType
