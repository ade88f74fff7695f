"""JSON schemas of dataclasses, Pydantic models and types, and values from the JSON that matches them."""
from __future__ import annotations

import dataclasses
import enum
import json
import types
import typing
from typing import Any

_SIMPLE = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}


def schema_text(wanted: Any) -> str:
    """The schema of a type, a dictionary or a text as JSON."""
    if isinstance(wanted, str):
        return wanted
    return json.dumps(wanted if isinstance(wanted, dict) else schema_of(wanted))


def schema_of(kind: Any) -> dict[str, Any]:
    """The JSON schema of a dataclass, a Pydantic model or a type of `typing`."""
    if kind is Any:
        return {}
    if kind in _SIMPLE:
        return {"type": _SIMPLE[kind]}
    if hasattr(kind, "model_json_schema"):
        return dict(kind.model_json_schema())
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return _object_schema(kind)
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return {"enum": [each.value for each in kind]}
    return _generic_schema(kind)


def _object_schema(kind: type) -> dict[str, Any]:
    hints = typing.get_type_hints(kind)
    fields = dataclasses.fields(kind)
    required = [each.name for each in fields
                if each.default is dataclasses.MISSING and each.default_factory is dataclasses.MISSING]
    return {"type": "object", "properties": {each.name: schema_of(hints[each.name]) for each in fields},
            "required": required, "additionalProperties": False}


def _generic_schema(kind: Any) -> dict[str, Any]:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Literal:
        return {"enum": list(arguments)}
    if origin in (typing.Union, getattr(types, "UnionType", None)):
        return {"anyOf": [schema_of(each) for each in arguments]}
    if kind is list or origin is list:
        return {"type": "array", **({"items": schema_of(arguments[0])} if arguments else {})}
    if origin is tuple and Ellipsis not in arguments:
        return {"type": "array", "prefixItems": [schema_of(each) for each in arguments],
                "minItems": len(arguments), "maxItems": len(arguments)}
    if kind is dict or origin is dict:
        return {"type": "object", **({"additionalProperties": schema_of(arguments[1])} if arguments else {})}
    raise TypeError(f"json_schema: {kind!r} has no JSON schema; use a dataclass, a Pydantic model, a type of JSON "
                    "or a dictionary with the schema")


def parse_as(kind: Any, text: str) -> Any:
    """The value that the text describes, as an object of the type that gave the schema."""
    if hasattr(kind, "model_validate_json"):
        return kind.model_validate_json(text)
    return _value_of(kind, json.loads(text)) if not isinstance(kind, (str, dict)) else json.loads(text)


def _value_of(kind: Any, value: Any) -> Any:
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        hints = typing.get_type_hints(kind)
        return kind(**{name: _value_of(hints[name], each) for name, each in value.items()})
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return kind(value)
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is list:
        return [_value_of(arguments[0], each) for each in value]
    if origin is tuple and Ellipsis not in arguments:
        return tuple(_value_of(each, item) for each, item in zip(arguments, value))
    if origin is dict:
        return {name: _value_of(arguments[1], each) for name, each in value.items()}
    if origin in (typing.Union, getattr(types, "UnionType", None)) and isinstance(value, dict):
        for each in arguments:
            if dataclasses.is_dataclass(each):
                return _value_of(each, value)
    return value
