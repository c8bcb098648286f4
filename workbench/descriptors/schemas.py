"""JSON Schema of every kind of descriptor, for editors (`workbench schema KIND`)."""

from __future__ import annotations

from typing import Any

from workbench.descriptors.lookups import KINDS

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def json_schema(kind: str) -> dict[str, Any]:
    """The JSON Schema (2020-12) of a kind of descriptor.

    It knows keys, types and units; names of other descriptors and what holds between fields are
    left to `workbench lint`. Raises `KeyError` for what is not in `KINDS`.
    """
    from workbench.descriptors.models import MODELS

    schemas = {str(name): model for name, model in MODELS.items()}
    schema = schemas[kind].model_json_schema(by_alias=True)
    return {"$schema": DIALECT, **schema, "title": f"workbench {kind}"}


__all__ = ["KINDS", "json_schema"]
