"""Generated from the contract by scripts/generate.py: do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import UNSET, UnsetType

from ..async_driver import AsyncDriver
from ..models import WebhookOk
from ..requests import FileInput
from .async_base import AsyncService

if TYPE_CHECKING:
    from ..async_client import AsyncEnvaiClient


class AsyncPrimitives(AsyncService):
    """`primitives.createWorkspace(name=…)`: names that a façade may change and the contract never does."""

    def __init__(self, driver: AsyncDriver, client: AsyncEnvaiClient) -> None:
        super().__init__(driver)
        self.sendChatMessage = client.chats.send_message
        self.streamChatEvents = client.chats.events
        self.cancelChatTurn = client.chats.cancel
        self.steerChatTurn = client.chats.steer
        self.resolveChatTool = client.chats.submit_tool_output
        self.resolveChatApproval = client.chats.submit_approval
        self.forkChat = client.chats.fork
        self.restoreChat = client.chats.restore
        self.getCapabilities = client.capabilities.get
        self.healthCheck = client.infrastructure.health
        self.getJwks = client.infrastructure.jwks
        self.createWorkspace = client.workspaces.create
        self.listWorkspaces = client.workspaces.list
        self.getWorkspace = client.workspaces.get
        self.updateWorkspace = client.workspaces.update
        self.createUserTool = client.tools.create
        self.listUserTools = client.tools.list
        self.getUserTool = client.tools.get
        self.updateUserTool = client.tools.update
        self.deleteUserTool = client.tools.delete
        self.createChat = client.chats.create
        self.listChats = client.chats.list
        self.getChat = client.chats.get
        self.listCompletions = client.completions.list
        self.getCompletion = client.completions.get
        self.indexWorkspaceFiles = client.files.read_or_list
        self.createWorkspaceFile = client.files.create
        self.updateWorkspaceFile = client.files.update
        self.deleteWorkspaceFile = client.files.delete
        self.downloadWorkspaceFile = client.files.download
        self.convertWorkspaceFileToPdf = client.files.convert_to_pdf
        self.createAgent = client.agents.create
        self.listAgents = client.agents.list
        self.getAgent = client.agents.get
        self.updateAgent = client.agents.update
        self.deleteAgent = client.agents.delete
        self.createTeam = client.teams.create
        self.listTeams = client.teams.list
        self.getTeam = client.teams.get
        self.updateTeam = client.teams.update
        self.deleteTeam = client.teams.delete
        self.listModels = client.models.list
        self.createApiKey = client.api_keys.create
        self.listApiKeys = client.api_keys.list
        self.deleteApiKey = client.api_keys.revoke
        self.createImageGeneration = client.images.generate
        self.getImageGeneration = client.images.get_generation
        self.uploadImage = client.images.upload
        self.listImageModels = client.images.list_models
        self.downloadArtifact = client.images.download_artifact
        self.uploadChatAttachment = client.attachments.upload
        self.listChatAttachments = client.attachments.list
        self.getChatAttachment = client.attachments.get
        self.deleteChatAttachment = client.attachments.delete
        self.retryChatAttachment = client.attachments.retry
        self.downloadChatAttachment = client.attachments.download
        self.uploadWikiSource = client.files.upload_source
        self.getWikiSource = client.files.source_status
        self.downloadWikiSource = client.files.download_source
        self.withdrawWikiSource = client.wiki.withdraw
        self.createWikiInboxRun = client.wiki.inbox
        self.createWikiOutboxRun = client.wiki.outbox
        self.createWikiSyncRun = client.wiki.sync
        self.getWikiOperation = client.wiki.operation
        self.listWikiCategories = client.wiki.categories
        self.getWikiCategoryIndex = client.wiki.category_index
        self.getWikiWebhookJwks = client.capabilities.wiki_webhook_jwks
        self.streamChatEventsLegacy = client.chats.events_history
        self.getCapabilitiesLegacy = client.capabilities.get_legacy
        self.claimChatTool = client.chats.claim_tool_call

    async def testGenerateImage(
        self, files: Sequence[FileInput], prompt: str, model_code: str, *, timeout: float | None = None
    ) -> object:
        """`testGenerateImage`: POST /tests/images/generate"""
        return await self._call(
            object, "testGenerateImage", {"files": files, "prompt": prompt, "model_code": model_code}, timeout
        )

    async def handleProviderWebhook(
        self,
        provider: str,
        *,
        callback_token: str | UnsetType = UNSET,
        webhook_id: str | UnsetType = UNSET,
        webhook_timestamp: str | UnsetType = UNSET,
        webhook_signature: str | UnsetType = UNSET,
        x_fal_webhook_request_id: str | UnsetType = UNSET,
        x_fal_webhook_user_id: str | UnsetType = UNSET,
        x_fal_webhook_timestamp: str | UnsetType = UNSET,
        x_fal_webhook_signature: str | UnsetType = UNSET,
        x_bfl_signature: str | UnsetType = UNSET,
        timeout: float | None = None,
    ) -> WebhookOk:
        """`handleProviderWebhook`: POST /webhooks/providers/{provider}"""
        return await self._call(
            WebhookOk,
            "handleProviderWebhook",
            {
                "provider": provider,
                "callback_token": callback_token,
                "webhook_id": webhook_id,
                "webhook_timestamp": webhook_timestamp,
                "webhook_signature": webhook_signature,
                "x_fal_webhook_request_id": x_fal_webhook_request_id,
                "x_fal_webhook_user_id": x_fal_webhook_user_id,
                "x_fal_webhook_timestamp": x_fal_webhook_timestamp,
                "x_fal_webhook_signature": x_fal_webhook_signature,
                "x_bfl_signature": x_bfl_signature,
            },
            timeout,
        )
