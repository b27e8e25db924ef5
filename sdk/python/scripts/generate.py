"""Writes the generated part of the SDK from `conformance/contract/operations.json`.

    python generate.py CONFORMANCE_FOLDER PACKAGE_FOLDER

Produces the packaged operation table (operations.json), the resource models, the async façade (one method per
operation), and the whole sync edition out of the async one: its façade, helpers, streams and client. Nothing here knows
about SSE, tools or retries: that runtime is written by hand, once.
"""

from __future__ import annotations

import json
import re
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

MODEL_MODULES = {
    "media": ("Attachment", "Categor", "Catalog", "Conversion", "Image", "Index", "Batch", "Wiki", "ChatAttachment"),
    "costs": ("Billing", "Currency", "UsageCost", "Completion"),
}
CLASSES = {"tools": "UserTools", "files": "WorkspaceFiles", "api_keys": "ApiKeys"}
PLANES = {
    "control": ("workspaces", "tools", "agents", "teams", "models", "api_keys"),
    "content": ("files", "images", "attachments", "wiki"),
    "execution": ("chats", "completions", "capabilities", "infrastructure"),
}
HEADER = '"""Generated from the contract by scripts/generate.py: do not edit."""\n\n'
MADE = "Generated from the async edition by scripts/generate.py: do not edit."
NOTES = {
    "resolveChatApproval": "Only where the capabilities announce `approval`: the original alpha answers 409.",
    "steerChatTurn": "Without a target it is for the orchestrator. Unless `steer` is announced it may do nothing.",
    "cancelChatTurn": "The end is observed as `turn.cancelled` on the stream, not by this answer.",
    "claimChatTool": "Where `tool_claims` is announced: the call is this holder's, or the answer is 409.",
    "createApiKey": "`token` is in this answer and never again: store it now. A key lasts 30 days by default.",
    "deleteUserTool": "Tools are addressed by name and shared by all workspaces of their owner.",
    "downloadArtifact": "For the parts of a signed URL; `download_signed` takes the URL as it was given.",
}
EDITIONS = {
    "services/async_base.py": "services/sync_base.py",
    "services/async_helpers.py": "services/sync_helpers.py",
    "services/async_streams.py": "services/sync_streams.py",
    "async_client.py": "client.py",
}
# In order: what the async edition says -> what the sync one says. Applied to the text, docstrings included.
SYNC_WORDS = (
    (r"^ +aclose = close\n\n?", ""),
    (r"\basync (def|with|for)\b", r"\1"),
    (r"\bawait ", ""),
    (r"\b__a(iter|next|enter|exit)__\b", r"__\1__"),
    (r"\bStopAsyncIteration\b", "StopIteration"),
    (r"\baclose\b", "close"),
    (r"\bAsync(Driver|Workers)\b", r"Sync\1"),
    (r"\bAsync(?=[A-Z])", ""),
    (r"\basync_client\b", "client"),
    (r"\basync_(?=[a-z])", "sync_"),
    (r"\basync edition\b", "sync edition"),
    (r"^( +)for (\w+) in (.+):\n +yield \2$", r"\1yield from \3"),
    (r" The sync edition is made from this file(: scripts/generate.py)?\.", ""),
)
HAND_WRITTEN = {"chats.events", "chats.events_history", "chats.list", "completions.list"}
# Arguments that a helper passes on: the name of their type, the operation they are of, what the helper gives itself.
PASSED_ON = {
    "ImageGenerationParams": ("createImageGeneration", set()),
    "CompletionFilters": ("listCompletions", {"page"}),
}


def module_of(model: str) -> str:
    for module, prefixes in MODEL_MODULES.items():
        if model.startswith(prefixes):
            return module
    return "resources"


def models(contract: dict[str, Any]) -> dict[str, str]:
    bodies: dict[str, list[str]] = defaultdict(list)
    uses: dict[str, set[str]] = defaultdict(set)
    for name, fields in contract["models"].items():
        module = module_of(name)
        lines = [f"class {name}(Resource, frozen=True, kw_only=True):"]
        for field, spec in sorted(fields.items(), key=lambda item: not item[1]["required"]):
            kind = re.sub(r"\bobject\b", "Value", spec["type"])  # a model has a field `object`
            uses[module] |= {m for m in re.findall(r"[A-Z]\w+", kind) if m in contract["models"]}
            label, rename = (f"{field}_", f'field(name="{field}")') if field == "from" else (field, "")
            if spec["required"]:
                lines.append(f"    {label}: {kind}" + (f" = {rename}" if rename else ""))
            else:
                nullable = kind if kind.endswith("| None") or kind == "Value" else f"{kind} | None"
                lines.append(f"    {label}: {nullable} = None")
        bodies[module].append("\n".join(lines))
    out = {}
    for module, classes in bodies.items():
        text = "\n\n\n".join(classes)
        imports = []
        if "datetime" in text:
            imports.append("from datetime import datetime\n")
        if "field(" in text:
            imports.append("from msgspec import field\n")
        for other in sorted({module_of(m) for m in uses[module]} - {module}):
            names = sorted(m for m in uses[module] if module_of(m) == other)
            imports.append(f"from .{other} import {', '.join(names)}")
        imports.append("from .base import Resource" + (", Value" if "Value" in text else ""))
        head = HEADER + "from __future__ import annotations\n\n" + "\n".join(imports)
        out[f"models/{module}.py"] = head + "\n\n\n" + text + "\n"
    names = sorted(contract["models"])
    lines = [
        f"from .{module} import {', '.join(sorted(n for n in names if module_of(n) == module))}"
        for module in sorted(bodies)
    ]
    exported = ", ".join(f'"{name}"' for name in sorted(["Resource", *names]))
    out["models/__init__.py"] = (
        HEADER + "from .base import Resource\n" + "\n".join(lines) + f"\n\n__all__ = [{exported}]\n"
    )
    return out


def params(contract: dict[str, Any]) -> str:
    """What nested arguments look like, as typed dictionaries."""
    classes = []
    for name, fields in contract["params"].items():
        lines = [f"class {name}(TypedDict):"]
        for field, spec in fields.items():
            lines.append(f"    {field}: " + (spec["type"] if spec["required"] else f"NotRequired[{spec['type']}]"))
        classes.append("\n".join(lines))
    operations = {operation["id"]: operation for operation in contract["operations"]}
    for name, (operation, own) in PASSED_ON.items():
        body = operations[operation]["body"] or {"fields": []}
        fields = {item["name"]: item for item in [*body["fields"], *operations[operation]["query"]]}
        lines = [f"class {name}(TypedDict):"]
        for field, item in fields.items():
            if field not in own:
                lines.append(f"    {field}: " + (item["type"] if item["required"] else f"NotRequired[{item['type']}]"))
        classes.append("\n".join(lines))
    exported = ", ".join(f'"{name}"' for name in sorted([*contract["params"], *PASSED_ON]))
    head = HEADER + "from __future__ import annotations\n\nfrom collections.abc import Mapping, Sequence\n"
    head += "from datetime import datetime\nfrom typing import Literal, NotRequired, TypedDict\n\n"
    return head + f"__all__ = [{exported}]\n\n\n" + "\n\n\n".join(classes) + "\n"


def unset(kind: str) -> str:
    nullable = kind.endswith(" | None")
    return kind.removesuffix(" | None") + " | UnsetType" + (" | None" if nullable else "")


def arguments(operation: dict[str, Any]) -> tuple[list[str], list[str]]:
    """The signature and the mapping handed to the core."""
    path = re.findall(r"{(\w+)}", operation["path"])
    fields = (operation["body"] or {"fields": []})["fields"]
    given = [*operation["query"], *operation["header"], *fields]
    positional = [f"{name}: str" for name in path]
    positional += [f"{item['name']}: {item['type']}" for item in given if item["required"]]
    optional = [f"{item['name']}: {unset(item['type'])} = UNSET" for item in given if not item["required"]]
    names = [*path, *(item["name"] for item in given)]
    retries = ["max_retries: int | None = None"] if retry_safe(operation) else []
    return [*positional, "*", *optional, "timeout: float | None = None", *retries], [
        f'"{name}": {name}' for name in names
    ]


def retry_safe(operation: dict[str, Any]) -> bool:
    return bool(operation["method"] == "GET" and operation["result"]["kind"] in ("json", "none"))


def summary(operation: dict[str, Any]) -> str:
    text = f"`{operation['id']}`: {operation['method']} {operation['path']}"
    text = text if len(text) < 105 else f"`{operation['id']}`"
    note = NOTES.get(operation["id"])
    return text if note is None else f"{text}\n\n        {note}\n        "


def sync_edition(text: str) -> str:
    """The sync twin of an async module."""
    for pattern, replacement in SYNC_WORDS:
        text = re.sub(pattern, replacement, text, flags=re.M)
    first, newline, rest = text.partition("\n")
    return text if text.startswith(HEADER) else f"{first}{newline}\n# {MADE}{newline}{rest}"


def method(operation: dict[str, Any], known: set[str]) -> str:
    signature, mapping = arguments(operation)
    result = operation["result"]
    answer = result.get("type", "")
    answer = answer if set(re.findall(r"[A-Z]\w+", answer)) <= known else "object"
    kinds = {"json": answer, "none": "None", "bytes": "AsyncByteStream"}
    kind = kinds[result["kind"]]
    annotation = re.sub(r"\blist\[", "Items[", kind)
    params = re.sub(r"\blist\[", "Items[", ", ".join(["self", *signature]))
    target = {"json": f"self._call({annotation}, ", "none": "self._do(", "bytes": "self._open("}[result["kind"]]
    give = "" if result["kind"] == "none" else "return "
    name = (operation["sdk"] or operation["id"]).rsplit(".", 1)[-1]
    limits = "timeout, max_retries" if retry_safe(operation) else "timeout"
    return (
        f"    async def {name}({params}) -> {annotation}:\n"
        f'        """{summary(operation)}"""\n'
        f'        {give}await {target}"{operation["id"]}", {{{", ".join(mapping)}}}, {limits})\n'
    )


def facade(contract: dict[str, Any], plane: str) -> str:
    groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for operation in contract["operations"]:
        if operation["sdk"] and operation["sdk"] not in HAND_WRITTEN:
            groups[operation["sdk"].split(".")[0]].append(operation)
    classes = []
    for service, operations in groups.items():
        if service not in PLANES[plane]:
            continue
        title = CLASSES.get(service) or service.title().replace("_", "")
        body = "\n".join(method(operation, set(contract["models"])) for operation in operations)
        classes.append(f"class Async{title}Service(AsyncService):\n{body}")
    return module(contract, "\n\n".join(classes))


def primitives(contract: dict[str, Any]) -> str:
    """Every operation under its operation id; those that are no client methods have their only place here."""
    hidden = [operation for operation in contract["operations"] if not operation["sdk"]]
    lines = [
        "class AsyncPrimitives(AsyncService):",
        '    """`primitives.createWorkspace(name=…)`: names that a façade may change and the contract never does."""',
        "",
        "    def __init__(self, driver: AsyncDriver, client: AsyncEnvaiClient) -> None:",
        "        super().__init__(driver)",
        *(f"        self.{item['id']} = client.{item['sdk']}" for item in contract["operations"] if item["sdk"]),
    ]
    body = "\n".join(method(operation, set(contract["models"])) for operation in hidden)
    more = (
        "from typing import TYPE_CHECKING\n\nfrom ..async_driver import AsyncDriver\n\n"
        "if TYPE_CHECKING:\n    from ..async_client import AsyncEnvaiClient\n\n"
    )
    return module(contract, "\n".join(lines) + "\n\n" + body, more)


def module(contract: dict[str, Any], text: str, more: str = "") -> str:
    """`text` with the imports it needs."""
    abstract = [name for name in ("Mapping", "Sequence") if f"{name}[" in text]
    given = sorted(name for name in contract["params"] if re.search(rf"\b{name}\b", text))
    used = sorted(name for name in contract["models"] if re.search(rf"\b{name}\b", text))
    names = [*(["AsyncByteStream"] if "AsyncByteStream" in text else []), "AsyncService"]
    return (
        HEADER
        + "from __future__ import annotations\n\n"
        + (f"from collections.abc import {', '.join(abstract)}\n" if abstract else "")
        + ("from datetime import datetime\n" if "datetime" in text else "")
        + ("from typing import Literal\n\n" if "Literal[" in text else "")
        + "from msgspec import UNSET, UnsetType\n\n"
        + (f"from ..models import {', '.join(used)}\n" if used else "")
        + (f"from ..params import {', '.join(given)}\n" if given else "")
        + ("from ..requests import FileInput\n" if "FileInput" in text else "")
        + f"from .async_base import {', '.join(names)}\n\n"
        + more
        + ("Items = list  # `list` is also a method name\n" if "Items[" in text else "")
        + "\n\n"
        + text
    )


def table(contract: dict[str, Any]) -> str:
    rows = []
    for operation in contract["operations"]:
        body = operation["body"]
        row = {
            "id": operation["id"],
            "method": operation["method"],
            "path": operation["path"],
            "result": operation["result"]["kind"],
            "type": operation["result"].get("type"),
            "unwrap": operation["result"].get("path", ""),
            "auth": operation["auth"],
            "negotiated": operation["negotiated"],
            "query": {item["name"]: item["wire"] for item in operation["query"]},
            "header": {item["name"]: item["wire"] for item in operation["header"]},
            "body": [item["name"] for item in body["fields"]] if body else [],
            "files": [item["name"] for item in body["fields"] if "FileInput" in item["type"]] if body else [],
            "media": body["media"] if body else None,
        }
        rows.append({key: value for key, value in row.items() if value not in (None, "", [], {}, False)})
    lines = ",\n".join(json.dumps(row) for row in rows)
    return f'{{"notice": {json.dumps(contract["notice"])},\n"operations": [\n{lines}\n]}}\n'


def with_pages(operations: list[dict[str, Any]], pages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The operations, those that a server may answer in pages as such."""
    paged = {page["id"]: page for page in pages}
    return [operation | paged.get(operation["id"], {}) for operation in operations]


def outputs(contract: dict[str, Any], package: Path) -> dict[str, str]:
    """Every generated file by its path in the package; `package` holds the hand-written async modules."""
    out = models(contract)
    out["params.py"] = params(contract)
    out["operations.json"] = table(contract)
    for plane in PLANES:
        out[f"services/async_{plane}.py"] = text = facade(contract, plane)
        out[f"services/sync_{plane}.py"] = sync_edition(text)
    out["services/async_primitives.py"] = text = primitives(contract)
    out["services/sync_primitives.py"] = sync_edition(text)
    for source, target in EDITIONS.items():
        out[target] = sync_edition((package / source).read_text(encoding="utf-8"))
    return out


if __name__ == "__main__":
    source, target = Path(sys.argv[1]), Path(sys.argv[2])
    inventory = json.loads((source / "contract/operations.json").read_text(encoding="utf-8"))
    more = json.loads((source / "contract/extensions.json").read_text(encoding="utf-8"))
    inventory["operations"] = with_pages(inventory["operations"], more["pages"]) + more["operations"]
    inventory["models"] |= more["models"]
    package = Path(__file__).parents[1] / "src/envai_client"
    for path, text in outputs(inventory, package).items():
        (target / path).write_text(text, encoding="utf-8")
