"""Our own client, sync and async, on a real server: every resource and every operation of the contract."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from envai_client import (
    AccessDeniedError,
    AuthenticationError,
    ConflictError,
    EnvaiError,
    NotFoundError,
    ValidationError,
)
from tests.contract.atp.studio import ORDER, Studio, paint

from .own_sdk import KINDS, NUMBERS, Place, each, now, opened, refused, served

INVENTORY = json.loads((Path(__file__).parents[2] / "conformance/contract/operations.json").read_text("utf-8"))
OPERATIONS = {item["id"]: item for item in INVENTORY["operations"]}
# What asks for no key. The wiki and the original's test page for pictures are not on this server.
WITHOUT_KEY = {"healthCheck": None, "getJwks": None, "getWikiWebhookJwks": NotFoundError}
WITHOUT_KEY |= {"testGenerateImage": NotFoundError}
WITHOUT_KEY |= dict.fromkeys(("downloadArtifact", "handleProviderWebhook"), ValidationError)
GONE = "wsp_01j5abcdefghjkmnpqrstvwxyz"

both = pytest.mark.parametrize("kind", KINDS)


@both
def test_every_operation_of_the_contract_has_a_method_and_an_address_on_the_server(kind: str, place: Place) -> None:
    """Without a key: an address that is not there answers 404 before anything else, one that is asks for the key."""

    async def work(client: Any) -> None:
        for name, item in OPERATIONS.items():
            if item["sdk"] is not None:
                service, _, method = item["sdk"].partition(".")
                assert callable(getattr(getattr(client, service), method)), name
            given = arguments(item)
            expected = WITHOUT_KEY.get(name, AuthenticationError)
            try:
                await first(getattr(client.primitives, name)(**given))
            except EnvaiError as error:
                assert expected is not None and type(error) is expected, (name, error)
            else:
                assert expected is None, name

    place.play(kind, work, api_key=None, contract_version=3)


def arguments(item: dict[str, Any]) -> dict[str, Any]:
    """Something for whatever an operation requires."""
    samples: dict[str, Any] = {
        "bool": True,
        "Mapping[str, object]": {},
        "FileInput": ("a.txt", b"a", "text/plain"),
        "Sequence[FileInput]": [("a.png", b"a", "image/png")],
        "Sequence[ContextItemParam]": [],
    }
    given = {part[1:-1]: "x" for part in item["path"].split("/") if part.startswith("{")}
    fields = [*item["query"], *item["header"], *(item["body"]["fields"] if item["body"] else [])]
    given |= {field["name"]: samples.get(field["type"], "/x") for field in fields if field["required"]}
    return given


async def first(answer: Any) -> Any:
    """The answer; of a stream, its first event."""
    value = await now(answer)
    if not hasattr(value, "last_seq"):
        return value
    async with opened(value):
        return await anext(each(value))


@both
@pytest.mark.parametrize("version", ["auto", 2, 3])
def test_the_version_is_agreed_upon_and_features_are_announced(kind: str, version: Any, place: Place) -> None:
    async def work(client: Any) -> None:
        found = await now(client.capabilities.get())
        assert found.protocol_version == (2 if version == 2 else 3)
        ahead = {"atomic_attach", "stream_epoch", "steer", "approval", "durable_replay", "chat_title"}
        assert ahead & set(found.features) == (set() if version == 2 else ahead)
        assert (await now(client.infrastructure.health())) is not None
        assert (await now(client.infrastructure.jwks())).keys
        assert (await now(client.models.list())).defaults
        assert (await now(client.capabilities.get_legacy())) is not None

    place.play(kind, work, contract_version=version)


@both
def test_workspaces_chats_tools_agents_and_teams_are_kept(kind: str, place: Place) -> None:
    async def work(client: Any) -> None:
        space = await now(client.workspaces.create(kind, metadata={"a": 1}))
        renamed = await now(client.workspaces.update(space.id, name=f"{kind} 2"))
        assert await now(client.workspaces.get(space.id)) == renamed and renamed.metadata == {"a": 1}
        assert space.id in [item.id for item in await now(client.workspaces.list())]
        assert (await refused(NotFoundError, lambda: client.workspaces.get(GONE))).http_status == 404
        name = f"mail_{kind}"
        tool = await now(client.tools.create(name, NUMBERS))
        assert (tool.kind, tool.timeout_seconds, tool.parameters) == ("client", 120, NUMBERS)
        assert (await refused(ValidationError, lambda: client.tools.create(name, NUMBERS))).details
        assert (await now(client.tools.update(name, timeout_seconds=30))).timeout_seconds == 30
        assert (await now(client.tools.get(name))).timeout_seconds == 30
        assert name in [item.name for item in await now(client.tools.list())]
        lead = await now(client.agents.create(kind, "s", "primary", external_tools_enabled=[{"name": name}]))
        aide = await now(client.agents.create(f"{kind} aide", "s", "subagent"))
        assert (await now(client.agents.update(lead.id, description="leads"))).description == "leads"
        assert (await now(client.agents.get(lead.id))).external_tools_enabled[0].name == name
        team = await now(client.teams.create(kind, lead.id, members=[{"agent_definition_id": aide.id}]))
        assert [member.agent_definition_id for member in team.members] == [aide.id]
        assert (await now(client.teams.update(team.id, members=[]))).members == []
        assert (await now(client.teams.get(team.id))).orchestrator_id == lead.id
        assert {lead.id, aide.id} <= {item.id for item in await now(client.agents.list())}
        await refused(ValidationError, lambda: client.agents.delete(lead.id))
        chat = await now(client.chats.create(space.id, team_id=team.id))
        assert await now(client.chats.get(space.id, chat.id)) == chat
        assert [item.id for item in (await now(client.chats.list(space.id))).data] == [chat.id]
        await refused(ValidationError, lambda: client.teams.delete(team.id))
        await now(client.agents.delete(aide.id))
        spare = await now(client.teams.create(f"{kind} spare", lead.id))
        await now(client.teams.delete(spare.id))
        assert spare.id not in [item.id for item in await now(client.teams.list())]
        await now(client.tools.delete(name))
        await refused(NotFoundError, lambda: client.tools.get(name))

    place.play(kind, work)


@both
def test_files_are_written_read_downloaded_printed_and_deleted(kind: str, place: Place, tmp_path: Path) -> None:
    async def work(client: Any) -> None:
        space, path = place.workspace, f"/{kind}/città.md"
        made = await now(client.files.create(space, path, "# Ciao\n\nuno\n"))
        assert (made.path, made.type, made.size) == (path[1:], "file", 12)
        await refused((ConflictError, ValidationError), lambda: client.files.create(space, path, "x"))  # type: ignore[arg-type]
        assert (await now(client.files.read_or_list(space, path))).content == "# Ciao\n\nuno\n"
        listed = await now(client.files.read_or_list(space, f"/{kind}"))
        assert [(entry.path, entry.type) for entry in listed.entries] == [(path[1:], "file")]
        await now(client.files.update(space, path, "# Due\n"))
        target = tmp_path / "here.md"
        assert await now(client.files.download_to_file(space, path, target)) == target
        assert target.read_text() == "# Due\n" and [item.name for item in tmp_path.iterdir()] == ["here.md"]
        printed = await now(client.files.convert_to_pdf(space, path))
        assert printed.content_type == "application/pdf" and (await now(printed.read())).startswith(b"%PDF-")
        await now(client.files.delete(space, f"/{kind}", recursive=True))
        await refused(NotFoundError, lambda: client.files.read_or_list(space, path))
        await refused(NotFoundError, lambda: client.files.download_to_file(space, path, tmp_path / "no"))
        assert not (tmp_path / "no").exists()
        await refused(NotFoundError, lambda: client.wiki.categories(space))

    place.play(kind, work)


@both
def test_an_attachment_is_kept_once_and_goes_with_a_message(kind: str, place: Place) -> None:
    chat = place.chat()

    async def work(client: Any) -> None:
        where, file = (place.workspace, chat), ("notes.md", b"# Hi\n", "text/markdown")
        made = await now(client.attachments.upload(*where, "key-1", file))
        assert (await now(client.attachments.upload(*where, "key-1", file))).attachment_id == made.attachment_id
        assert [item.attachment_id for item in await now(client.attachments.list(*where))] == [made.attachment_id]
        assert (await now(client.attachments.get(*where, made.attachment_id))).attachment_id == made.attachment_id
        original = await now(client.attachments.download(*where, made.attachment_id, "original"))
        assert await now(original.read()) == b"# Hi\n"
        answered = await now(
            client.chats.send_and_wait(
                chat, "hello", idempotency_key="m-1", attachment_ids=[made.attachment_id], timeout=20
            )
        )
        assert answered.completed and answered.text == "Hello."
        # A message that goes out again under its key finds its turn, even though it is over.
        again = await now(
            client.chats.send_and_wait(
                chat, "hello", idempotency_key="m-1", attachment_ids=[made.attachment_id], timeout=20
            )
        )
        assert (again.turn_id, again.text) == (answered.turn_id, "Hello.")
        await refused(EnvaiError, lambda: client.attachments.retry(*where, made.attachment_id, "key-2"))
        await now(client.attachments.delete(*where, made.attachment_id))

    place.play(kind, work)


@both
def test_a_key_works_until_it_is_revoked(kind: str, place: Place) -> None:
    async def work(client: Any) -> None:
        made = await now(client.api_keys.create(kind))
        assert made.token not in repr(made)
        other = place.client(kind, api_key=made.token)
        assert await now(other.workspaces.list())
        await now(client.api_keys.revoke(made.id))
        error = await refused(AuthenticationError, lambda: other.workspaces.list())
        assert error.http_status == 401 and made.token not in repr(error)
        assert next(key for key in await now(client.api_keys.list()) if key.id == made.id).revoked_at
        await now(other.aclose() if kind == "async" else other.close())

    place.play(kind, work)


@both
def test_completions_are_iterated_page_by_page(kind: str, place: Place) -> None:
    chat = place.chat()

    async def work(client: Any) -> None:
        results = [await now(client.chats.send_and_wait(chat, "how many", timeout=20)) for _ in range(3)]
        assert [result.text for result in results] == ["answer 1", "answer 2", "answer 3"]
        where = (place.workspace, chat)
        found = [item async for item in each(client.completions.iterate_completions(*where, per_page=2))]
        assert [item.id for item in found] == [result.turn_id for result in reversed(results)]
        page = await now(client.completions.list(*where, status="succeeded", per_page=2))
        assert (len(page.data), page.meta.total) == (2, 3)
        one = await now(client.completions.get(*where, found[0].id))
        assert (one.id, one.chat_id) == (found[0].id, chat)
        none = client.completions.iterate_completions(*where, status="failed")
        assert [item async for item in each(none)] == []

    place.play(kind, work)


@both
def test_a_picture_is_ordered_awaited_and_downloaded(kind: str, tmp_path: Path) -> None:
    """The door on a socket of this process: a real server resolves the webhook's name, which needs a network."""

    async def work(client: Any) -> None:
        images = client.images
        assert [item.model for item in await now(images.list_models())] == ["brush"]
        made = await now(images.generate_and_wait(**ORDER, interval=0.05, timeout=20))
        assert (made.status, made.provider, len(made.files)) == ("succeeded", "easel", 1)
        url = made.files[0].download_url
        saved = await now(images.download_to_file(url, tmp_path / "square.png"))
        assert saved.read_bytes().startswith(b"\x89PNG") and len(saved.read_bytes()) == made.files[0].size
        await refused(AccessDeniedError, lambda: images.download_signed(url[:-3] + "AAA"))
        failed = await now(images.generate_and_wait(**ORDER | {"prompt": "never"}, interval=0.05, timeout=20))
        assert (failed.status, failed.error.code) == ("failed", "refused")
        await refused(ValidationError, lambda: images.upload(("x.png", b"no picture", "image/png")))
        kept = await now(images.upload(("x.png", saved.read_bytes(), "image/png")))
        assert kept.id.startswith("upl_")
        assert (await now(images.get_generation(made.id))).status == "succeeded"

    async def serve(studio: Studio) -> None:
        place = studio.place
        async with served(place.door) as url:
            client_of = Place(url, place.ada.key, place.made.workspace_id, place.made.team_id)
            await asyncio.to_thread(client_of.play, kind, work)

    paint(serve, told=True)


@both
def test_a_picture_for_nobody_reachable_is_refused(kind: str, place: Place) -> None:
    order = {"model": "brush", "prompt": "x", "webhook_url": "https://127.0.0.1/images"}

    async def work(client: Any) -> None:
        error = await refused(ValidationError, lambda: client.images.generate_and_wait(**order))
        assert "webhook_url" in error.details

    place.play(kind, work)
