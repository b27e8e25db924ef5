"""Generated from the contract by scripts/generate.py: do not edit."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import UNSET, UnsetType

from ..models import (
    Capabilities,
    CapabilitiesLegacy,
    Chat,
    ChatForked,
    ChatMessageAccepted,
    Completion,
    Health,
    JwksDocument,
    RestoreChatAccepted,
    TurnAccepted,
)
from ..params import ContextItemParam
from .sync_base import Service


class ChatsService(Service):
    def send_message(
        self,
        chat_id: str,
        message: str,
        *,
        idempotency_key: str | UnsetType = UNSET,
        attachment_ids: Sequence[str] | UnsetType = UNSET,
        timeout: float | None = None,
    ) -> ChatMessageAccepted:
        """`sendChatMessage`: POST /atp/v3/chats/{chat_id}/messages"""
        return self._call(
            ChatMessageAccepted,
            "sendChatMessage",
            {
                "chat_id": chat_id,
                "idempotency_key": idempotency_key,
                "message": message,
                "attachment_ids": attachment_ids,
            },
            timeout,
        )

    def cancel(self, chat_id: str, *, timeout: float | None = None) -> TurnAccepted:
        """`cancelChatTurn`: POST /atp/v3/chats/{chat_id}/cancel

        The end is observed as `turn.cancelled` on the stream, not by this answer.
        """
        return self._call(TurnAccepted, "cancelChatTurn", {"chat_id": chat_id}, timeout)

    def steer(
        self, chat_id: str, text: str, *, target_agent_id: str | UnsetType | None = UNSET, timeout: float | None = None
    ) -> TurnAccepted:
        """`steerChatTurn`: POST /atp/v3/chats/{chat_id}/steer

        Without a target it is for the orchestrator. Unless `steer` is announced it may do nothing.
        """
        return self._call(
            TurnAccepted,
            "steerChatTurn",
            {"chat_id": chat_id, "text": text, "target_agent_id": target_agent_id},
            timeout,
        )

    def submit_tool_output(
        self,
        chat_id: str,
        call_id: str,
        output: str,
        *,
        is_error: bool | UnsetType = UNSET,
        timeout: float | None = None,
    ) -> None:
        """`resolveChatTool`: POST /atp/v3/chats/{chat_id}/tool-output"""
        self._do(
            "resolveChatTool", {"chat_id": chat_id, "call_id": call_id, "output": output, "is_error": is_error}, timeout
        )

    def submit_approval(
        self,
        chat_id: str,
        approval_id: str,
        approve: bool,
        *,
        reason: str | UnsetType = UNSET,
        timeout: float | None = None,
    ) -> None:
        """`resolveChatApproval`: POST /atp/v3/chats/{chat_id}/approval

        Only where the capabilities announce `approval`: the original alpha answers 409.
        """
        self._do(
            "resolveChatApproval",
            {"chat_id": chat_id, "approval_id": approval_id, "approve": approve, "reason": reason},
            timeout,
        )

    def fork(self, chat_id: str, destination_chat_id: str, *, timeout: float | None = None) -> ChatForked:
        """`forkChat`: POST /atp/v3/chats/{chat_id}/fork"""
        return self._call(
            ChatForked, "forkChat", {"chat_id": chat_id, "destination_chat_id": destination_chat_id}, timeout
        )

    def restore(
        self, chat_id: str, orchestrator_context: Sequence[ContextItemParam], *, timeout: float | None = None
    ) -> RestoreChatAccepted:
        """`restoreChat`: POST /atp/v3/chats/{chat_id}/restore"""
        return self._call(
            RestoreChatAccepted,
            "restoreChat",
            {"chat_id": chat_id, "orchestrator_context": orchestrator_context},
            timeout,
        )

    def create(self, workspace_id: str, team_id: str, *, timeout: float | None = None) -> Chat:
        """`createChat`: POST /workspaces/{workspace_id}/chats"""
        return self._call(Chat, "createChat", {"workspace_id": workspace_id, "team_id": team_id}, timeout)

    def get(
        self, workspace_id: str, chat_id: str, *, timeout: float | None = None, max_retries: int | None = None
    ) -> Chat:
        """`getChat`: GET /workspaces/{workspace_id}/chats/{chat_id}"""
        return self._call(Chat, "getChat", {"workspace_id": workspace_id, "chat_id": chat_id}, timeout, max_retries)

    def claim_tool_call(self, chat_id: str, call_id: str, holder: str, *, timeout: float | None = None) -> None:
        """`claimChatTool`: POST /atp/v3/chats/{chat_id}/tool-claim

        Where `tool_claims` is announced: the call is this holder's, or the answer is 409.
        """
        self._do("claimChatTool", {"chat_id": chat_id, "call_id": call_id, "holder": holder}, timeout)


class CapabilitiesService(Service):
    def get(self, *, timeout: float | None = None, max_retries: int | None = None) -> Capabilities:
        """`getCapabilities`: GET /atp/v3/capabilities"""
        return self._call(Capabilities, "getCapabilities", {}, timeout, max_retries)

    def wiki_webhook_jwks(self, *, timeout: float | None = None, max_retries: int | None = None) -> JwksDocument:
        """`getWikiWebhookJwks`: GET /.well-known/wiki-webhook-jwks.json"""
        return self._call(JwksDocument, "getWikiWebhookJwks", {}, timeout, max_retries)

    def get_legacy(self, *, timeout: float | None = None, max_retries: int | None = None) -> CapabilitiesLegacy:
        """`getCapabilitiesLegacy`: GET /capabilities"""
        return self._call(CapabilitiesLegacy, "getCapabilitiesLegacy", {}, timeout, max_retries)


class InfrastructureService(Service):
    def health(self, *, timeout: float | None = None, max_retries: int | None = None) -> Health:
        """`healthCheck`: GET /up"""
        return self._call(Health, "healthCheck", {}, timeout, max_retries)

    def jwks(self, *, timeout: float | None = None, max_retries: int | None = None) -> JwksDocument:
        """`getJwks`: GET /.well-known/jwks.json"""
        return self._call(JwksDocument, "getJwks", {}, timeout, max_retries)


class CompletionsService(Service):
    def get(
        self,
        workspace_id: str,
        chat_id: str,
        completion_id: str,
        *,
        timeout: float | None = None,
        max_retries: int | None = None,
    ) -> Completion:
        """`getCompletion`: GET /workspaces/{workspace_id}/chats/{chat_id}/completions/{completion_id}"""
        return self._call(
            Completion,
            "getCompletion",
            {"workspace_id": workspace_id, "chat_id": chat_id, "completion_id": completion_id},
            timeout,
            max_retries,
        )
