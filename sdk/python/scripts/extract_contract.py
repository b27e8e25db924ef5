"""Reduces the published contract (OpenAPI 2 and 3, operation list) to what the SDKs generate from.

    python extract_contract.py CONTRACTS_FOLDER CONFORMANCE_FOLDER

CONTRACTS_FOLDER holds openapi.json, openapi-v2.json and operations.json as the `envai-teams-sdk` package ships them.
Writes `contract/operations.json`: every operation with its façade name, and every response model with its fields.
A field is required only if every contract version that has the model requires it: one model reads both. An object
without a name of its own is named after where it stands. What a request takes is a params type of its own, closed
values as literals; what an answer gives stays open, because a newer server may say more.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

NAMES = {
    "sendChatMessage": "chats.send_message",
    "streamChatEvents": "chats.events",
    "cancelChatTurn": "chats.cancel",
    "steerChatTurn": "chats.steer",
    "resolveChatTool": "chats.submit_tool_output",
    "resolveChatApproval": "chats.submit_approval",
    "forkChat": "chats.fork",
    "restoreChat": "chats.restore",
    "getCapabilities": "capabilities.get",
    "healthCheck": "infrastructure.health",
    "getJwks": "infrastructure.jwks",
    "createWorkspace": "workspaces.create",
    "listWorkspaces": "workspaces.list",
    "getWorkspace": "workspaces.get",
    "updateWorkspace": "workspaces.update",
    "createUserTool": "tools.create",
    "listUserTools": "tools.list",
    "getUserTool": "tools.get",
    "updateUserTool": "tools.update",
    "deleteUserTool": "tools.delete",
    "createChat": "chats.create",
    "listChats": "chats.list",
    "getChat": "chats.get",
    "listCompletions": "completions.list",
    "getCompletion": "completions.get",
    "indexWorkspaceFiles": "files.read_or_list",
    "createWorkspaceFile": "files.create",
    "updateWorkspaceFile": "files.update",
    "deleteWorkspaceFile": "files.delete",
    "downloadWorkspaceFile": "files.download",
    "convertWorkspaceFileToPdf": "files.convert_to_pdf",
    "createAgent": "agents.create",
    "listAgents": "agents.list",
    "getAgent": "agents.get",
    "updateAgent": "agents.update",
    "deleteAgent": "agents.delete",
    "createTeam": "teams.create",
    "listTeams": "teams.list",
    "getTeam": "teams.get",
    "updateTeam": "teams.update",
    "deleteTeam": "teams.delete",
    "listModels": "models.list",
    "createApiKey": "api_keys.create",
    "listApiKeys": "api_keys.list",
    "deleteApiKey": "api_keys.revoke",
    "createImageGeneration": "images.generate",
    "getImageGeneration": "images.get_generation",
    "uploadImage": "images.upload",
    "listImageModels": "images.list_models",
    "downloadArtifact": "images.download_artifact",
    "uploadChatAttachment": "attachments.upload",
    "listChatAttachments": "attachments.list",
    "getChatAttachment": "attachments.get",
    "deleteChatAttachment": "attachments.delete",
    "retryChatAttachment": "attachments.retry",
    "downloadChatAttachment": "attachments.download",
    "uploadWikiSource": "files.upload_source",
    "getWikiSource": "files.source_status",
    "downloadWikiSource": "files.download_source",
    "withdrawWikiSource": "wiki.withdraw",
    "createWikiInboxRun": "wiki.inbox",
    "createWikiOutboxRun": "wiki.outbox",
    "createWikiSyncRun": "wiki.sync",
    "getWikiOperation": "wiki.operation",
    "listWikiCategories": "wiki.categories",
    "getWikiCategoryIndex": "wiki.category_index",
    "getWikiWebhookJwks": "capabilities.wiki_webhook_jwks",
    "streamChatEventsLegacy": "chats.events_history",
    "getCapabilitiesLegacy": "capabilities.get_legacy",
    # Reachable only as primitives: a local test helper and a server-to-server callback.
    "testGenerateImage": None,
    "handleProviderWebhook": None,
}
SCALARS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}


PARAMS = {
    "AgentTool": "AgentToolParam",
    "TeamMemberCreateRequest": "TeamMemberParam",
    "InputImage": "InputImageParam",
    "ImageDimensions": "ImageDimensionsParam",
    "OrchestratorContextItem": "ContextItemParam",
}


def python_type(schema: dict[str, Any], *, given: bool = False) -> str:
    """The type of what is answered, or of what is `given` in a request."""
    if "$ref" in schema:
        return named_type(schema["$ref"].rsplit("/", 1)[-1], given)
    kinds = schema.get("type")
    if isinstance(kinds, list):
        return union([python_type({**schema, "type": kind}, given=given) for kind in kinds])
    if "oneOf" in schema or "anyOf" in schema:
        return union([python_type(option, given=given) for option in schema.get("oneOf") or schema["anyOf"]])
    if kinds == "array":
        return f"{'Sequence' if given else 'list'}[{python_type(schema.get('items', {}), given=given)}]"
    return simple(schema, kinds, given)


def simple(schema: dict[str, Any], kind: str | None, given: bool) -> str:
    fixed = [schema["const"]] if "const" in schema else schema.get("enum")
    if given and fixed and all(isinstance(value, str) for value in fixed):
        return "None" if kind == "null" else f"Literal[{', '.join(json.dumps(value) for value in fixed)}]"
    if kind in SCALARS:
        return scalar(kind, schema.get("format"), given)
    if fixed:
        return union(sorted({type(value).__name__ for value in fixed}))
    if kind == "object" or "properties" in schema:
        return "Mapping[str, object]" if given else "dict[str, object]"
    return "object"


def scalar(kind: str, form: str | None, given: bool) -> str:
    if kind == "null":
        return "None"
    if form == "binary":
        return "FileInput"
    if form == "date-time":
        return "datetime | str" if given else "datetime"
    return SCALARS[kind]


def named_type(name: str, given: bool) -> str:
    schema = SCHEMAS[name]
    if given and name in PARAMS:
        return PARAMS[name]
    if name in {"WorkspaceMetadata", "ProviderWebhookPayload", "OpenRouterPricing"} or name.endswith("Request"):
        return "Mapping[str, object]" if given else "dict[str, object]"
    if "properties" not in schema:
        return python_type({key: value for key, value in schema.items() if key != "$ref"}, given=given)
    return "Mapping[str, object]" if given else name


def union(options: list[str]) -> str:
    flat = dict.fromkeys(options)
    if "object" in flat:
        return "object"
    if "float" in flat:
        flat.pop("int", None)
    nullable = flat.pop("None", "absent") != "absent" or "NoneType" in flat
    flat.pop("NoneType", None)
    return " | ".join([*flat, *(["None"] if nullable else [])])


def parameter(raw: dict[str, Any]) -> dict[str, Any]:
    name = re.sub(r"\W+", "_", raw["name"]).strip("_").lower()
    name = {"from": "from_", "type": "type_", "all": "all_"}.get(name, name)
    kind = python_type(raw.get("schema", {}), given=True)
    return {"name": name, "wire": raw["name"], "required": bool(raw.get("required")), "type": kind}


def body(raw: dict[str, Any] | None, media: str | None) -> dict[str, Any] | None:
    if raw is None:
        return None
    schema = SCHEMAS[raw["$ref"].rsplit("/", 1)[-1]] if "$ref" in raw else raw
    required = set(schema.get("required", ()))
    fields = [
        {"name": name, "required": name in required, "type": python_type(value, given=True)}
        for name, value in schema.get("properties", {}).items()
    ]
    return {"media": media, "fields": fields}


def result(raw: dict[str, Any]) -> dict[str, Any]:
    if raw["stream"] or raw["path"] == "/chats/{chat_id}/events":
        return {"kind": "events"}
    kind = raw["response_type"]
    if kind in ("bytes", "None", None):
        return {"kind": "bytes" if kind == "bytes" else "none"}
    renamed = {
        "HealthCheckResponse": "Health",
        "CreateApiKeyResponse": "ApiKeyCreated",
        "list[ModelListEntry]": "ModelList",
        "ListChatAttachmentsResponse": "list[ChatAttachment]",
        "TestImageGenerateResponse": "dict[str, object]",
    }
    envelope = {"healthCheck": "data", "listChatAttachments": "data.attachments"}
    path = "data" if raw["unwrap"] else ""
    return {"kind": "json", "type": renamed.get(kind, kind), "path": envelope.get(raw["id"], path)}


def operation(name: str, raw: dict[str, Any]) -> dict[str, Any]:
    raw = {**raw, "id": name}
    params = raw["params"]
    negotiated = (
        raw["path"].startswith(("/chats/", "/atp/v3/", "/capabilities"))
        or name in {"getCompletion", "listCompletions"}
        or "ChatAttachment" in name
        or ("Wiki" in name and name != "getWikiWebhookJwks")
    )
    query = [parameter(p) for p in params if p["in"] == "query"]
    if name == "listCompletions":
        query.append({"name": "page", "wire": "page", "required": False, "type": "int"})
    return {
        "id": name,
        "sdk": NAMES[name],
        "method": raw["method"],
        "path": raw["path"],
        "query": query,
        "header": [parameter(p) for p in params if p["in"] == "header"],
        "body": body(raw["request"], raw["media"]),
        "result": result(raw),
        "auth": raw["auth"],
        "negotiated": negotiated,
    }


def model(name: str, versions: list[dict[str, Any]]) -> dict[str, Any]:
    schema = SCHEMAS[name]
    required = set.intersection(*(set(v[name].get("required", ())) for v in versions if name in v))
    fields = {}
    for field, value in schema["properties"].items():
        kind = python_type(value)
        fields[field] = {"type": kind, "required": field in required}
    return fields


def params(name: str) -> dict[str, Any]:
    schema = SCHEMAS[name]
    required = set(schema.get("required", ()))
    return {
        field: {"type": python_type(value, given=True), "required": field in required}
        for field, value in schema["properties"].items()
    }


def lift(schemas: dict[str, Any]) -> None:
    """Give every anonymous object with fields of its own a name: the model's, then the field's."""
    queue = [name for name, schema in schemas.items() if "properties" in schema and not name.endswith("Request")]
    while queue:
        name = queue.pop()
        for field, value in schemas[name]["properties"].items():
            for place in (value, value.get("items", {}), *value.get("anyOf", ())):
                if "properties" not in place:
                    continue
                title = name.removesuffix("Record") + "".join(part.title() for part in field.split("_"))
                title = title.removesuffix("s") if place is value.get("items") else title
                schemas[title] = dict(place)
                queue.append(title)
                kept = [{"$ref": f"#/components/schemas/{title}"}]
                if isinstance(place.get("type"), list):
                    schemas[title]["type"] = "object"
                    kept.append({"type": "null"})
                place.clear()
                place.update(kept[0] if len(kept) == 1 else {"anyOf": kept})


def reachable(start: list[str]) -> list[str]:
    seen: dict[str, None] = {}
    queue = list(start)
    while queue:
        for name in re.findall(r"[A-Z]\w+", queue.pop(0)):
            if name not in seen and name in SCHEMAS and "properties" in SCHEMAS[name]:
                seen[name] = None
                queue += [python_type(value) for value in SCHEMAS[name]["properties"].values()]
    return list(seen)


def patch(schemas: dict[str, Any]) -> None:
    """Names what the contract leaves anonymous, and flattens the one model made of two halves."""
    entries = [schemas[name] for name in ("LlmModelEntry", "TeamModelEntry") if name in schemas]
    schemas["ModelListEntry"] = {
        "type": "object",
        "properties": {field: value for entry in entries for field, value in entry["properties"].items()},
        "required": sorted(set.intersection(*(set(entry.get("required", ())) for entry in entries))),
    }
    key = schemas["ApiKey"]
    schemas["ApiKeyCreated"] = {
        "type": "object",
        "properties": {**key["properties"], "token": {"type": "string"}},
        "required": [*key["required"], "token"],
    }
    names = ("status", "timestamp", "app", "env")
    schemas["Workspace"]["properties"]["metadata"] = {"anyOf": [{"type": "object"}, {"type": "array"}]}
    schemas["Health"] = {
        "type": "object",
        "properties": {name: {"type": "string"} for name in names},
        "required": ["status"],
    }
    lift(schemas)


if __name__ == "__main__":
    contracts, conformance = Path(sys.argv[1]), Path(sys.argv[2])
    documents = [json.loads((contracts / name).read_text()) for name in ("openapi.json", "openapi-v2.json")]
    versions = [document["components"]["schemas"] for document in documents]
    SCHEMAS = versions[0]
    for schemas in versions:
        patch(schemas)
    raw_operations = json.loads((contracts / "operations.json").read_text())
    operations = [operation(name, raw) for name, raw in raw_operations.items()]
    names = reachable([entry["result"].get("type", "") for entry in operations])
    out = {
        "notice": "Derived from the contracts of envai-teams-sdk 1.0.0a5, MIT, (c) 2026 DigItalyGo; see LICENSE-envai.",
        "operations": operations,
        "params": {title: params(name) for name, title in PARAMS.items()},
        "models": {name: model(name, versions) for name in sorted(names)},
    }
    folder = conformance / "contract"
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(out, indent=1, ensure_ascii=False) + "\n"
    (folder / "operations.json").write_text(text, encoding="utf-8")
    (folder / "LICENSE-envai").write_text((contracts / "LICENSE").read_text(), encoding="utf-8")
