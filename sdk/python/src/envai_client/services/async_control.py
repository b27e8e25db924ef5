"""Generated from the contract by scripts/generate.py: do not edit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec import UNSET, UnsetType

from ..models import Agent, ApiKey, ApiKeyCreated, ModelList, Team, UserTool, Workspace
from ..params import AgentToolParam, TeamMemberParam
from .async_base import AsyncService

Items = list  # `list` is also a method name


class AsyncWorkspacesService(AsyncService):
    async def create(
        self, name: str, *, metadata: Mapping[str, object] | UnsetType = UNSET, timeout: float | None = None
    ) -> Workspace:
        """`createWorkspace`: POST /workspaces"""
        return await self._call(Workspace, "createWorkspace", {"name": name, "metadata": metadata}, timeout)

    async def list(self, *, timeout: float | None = None, max_retries: int | None = None) -> Items[Workspace]:
        """`listWorkspaces`: GET /workspaces"""
        return await self._call(Items[Workspace], "listWorkspaces", {}, timeout, max_retries)

    async def get(
        self, workspace_id: str, *, timeout: float | None = None, max_retries: int | None = None
    ) -> Workspace:
        """`getWorkspace`: GET /workspaces/{workspace_id}"""
        return await self._call(Workspace, "getWorkspace", {"workspace_id": workspace_id}, timeout, max_retries)

    async def update(
        self,
        workspace_id: str,
        *,
        name: str | UnsetType = UNSET,
        metadata: Mapping[str, object] | UnsetType = UNSET,
        timeout: float | None = None,
    ) -> Workspace:
        """`updateWorkspace`: PUT /workspaces/{workspace_id}"""
        return await self._call(
            Workspace, "updateWorkspace", {"workspace_id": workspace_id, "name": name, "metadata": metadata}, timeout
        )


class AsyncUserToolsService(AsyncService):
    async def create(
        self,
        name: str,
        parameters: Mapping[str, object],
        *,
        kind: Literal["client"] | UnsetType = UNSET,
        description: str | UnsetType | None = UNSET,
        timeout_seconds: int | UnsetType = UNSET,
        timeout: float | None = None,
    ) -> UserTool:
        """`createUserTool`: POST /tools"""
        return await self._call(
            UserTool,
            "createUserTool",
            {
                "name": name,
                "kind": kind,
                "description": description,
                "parameters": parameters,
                "timeout_seconds": timeout_seconds,
            },
            timeout,
        )

    async def list(self, *, timeout: float | None = None, max_retries: int | None = None) -> Items[UserTool]:
        """`listUserTools`: GET /tools"""
        return await self._call(Items[UserTool], "listUserTools", {}, timeout, max_retries)

    async def get(self, name: str, *, timeout: float | None = None, max_retries: int | None = None) -> UserTool:
        """`getUserTool`: GET /tools/{name}"""
        return await self._call(UserTool, "getUserTool", {"name": name}, timeout, max_retries)

    async def update(
        self,
        name: str,
        *,
        description: str | UnsetType | None = UNSET,
        parameters: Mapping[str, object] | UnsetType = UNSET,
        timeout_seconds: int | UnsetType = UNSET,
        timeout: float | None = None,
    ) -> UserTool:
        """`updateUserTool`: PUT /tools/{name}"""
        return await self._call(
            UserTool,
            "updateUserTool",
            {"name": name, "description": description, "parameters": parameters, "timeout_seconds": timeout_seconds},
            timeout,
        )

    async def delete(self, name: str, *, timeout: float | None = None) -> None:
        """`deleteUserTool`: DELETE /tools/{name}

        Tools are addressed by name and shared by all workspaces of their owner.
        """
        await self._do("deleteUserTool", {"name": name}, timeout)


class AsyncAgentsService(AsyncService):
    async def create(
        self,
        name: str,
        system_prompt: str,
        mode: Literal["primary", "subagent"],
        *,
        description: str | UnsetType | None = UNSET,
        model: str | UnsetType | None = UNSET,
        tools_enabled: Sequence[AgentToolParam] | UnsetType = UNSET,
        external_tools_enabled: Sequence[AgentToolParam] | UnsetType = UNSET,
        permissions: Mapping[str, object] | UnsetType = UNSET,
        can_write_knowledge: bool | UnsetType = UNSET,
        can_write_skills: bool | UnsetType = UNSET,
        config: Mapping[str, object] | UnsetType = UNSET,
        timeout: float | None = None,
    ) -> Agent:
        """`createAgent`: POST /agents"""
        return await self._call(
            Agent,
            "createAgent",
            {
                "name": name,
                "description": description,
                "system_prompt": system_prompt,
                "model": model,
                "mode": mode,
                "tools_enabled": tools_enabled,
                "external_tools_enabled": external_tools_enabled,
                "permissions": permissions,
                "can_write_knowledge": can_write_knowledge,
                "can_write_skills": can_write_skills,
                "config": config,
            },
            timeout,
        )

    async def list(self, *, timeout: float | None = None, max_retries: int | None = None) -> Items[Agent]:
        """`listAgents`: GET /agents"""
        return await self._call(Items[Agent], "listAgents", {}, timeout, max_retries)

    async def get(self, agent_id: str, *, timeout: float | None = None, max_retries: int | None = None) -> Agent:
        """`getAgent`: GET /agents/{agent_id}"""
        return await self._call(Agent, "getAgent", {"agent_id": agent_id}, timeout, max_retries)

    async def update(
        self,
        agent_id: str,
        *,
        name: str | UnsetType = UNSET,
        description: str | UnsetType | None = UNSET,
        system_prompt: str | UnsetType = UNSET,
        model: str | UnsetType | None = UNSET,
        mode: Literal["primary", "subagent"] | UnsetType = UNSET,
        tools_enabled: Sequence[AgentToolParam] | UnsetType = UNSET,
        external_tools_enabled: Sequence[AgentToolParam] | UnsetType = UNSET,
        permissions: Mapping[str, object] | UnsetType = UNSET,
        can_write_knowledge: bool | UnsetType = UNSET,
        can_write_skills: bool | UnsetType = UNSET,
        config: Mapping[str, object] | UnsetType = UNSET,
        timeout: float | None = None,
    ) -> Agent:
        """`updateAgent`: PUT /agents/{agent_id}"""
        return await self._call(
            Agent,
            "updateAgent",
            {
                "agent_id": agent_id,
                "name": name,
                "description": description,
                "system_prompt": system_prompt,
                "model": model,
                "mode": mode,
                "tools_enabled": tools_enabled,
                "external_tools_enabled": external_tools_enabled,
                "permissions": permissions,
                "can_write_knowledge": can_write_knowledge,
                "can_write_skills": can_write_skills,
                "config": config,
            },
            timeout,
        )

    async def delete(self, agent_id: str, *, timeout: float | None = None) -> None:
        """`deleteAgent`: DELETE /agents/{agent_id}"""
        await self._do("deleteAgent", {"agent_id": agent_id}, timeout)


class AsyncTeamsService(AsyncService):
    async def create(
        self,
        name: str,
        orchestrator_id: str,
        *,
        description: str | UnsetType | None = UNSET,
        members: Sequence[TeamMemberParam] | UnsetType = UNSET,
        timeout: float | None = None,
    ) -> Team:
        """`createTeam`: POST /teams"""
        return await self._call(
            Team,
            "createTeam",
            {"name": name, "description": description, "orchestrator_id": orchestrator_id, "members": members},
            timeout,
        )

    async def list(self, *, timeout: float | None = None, max_retries: int | None = None) -> Items[Team]:
        """`listTeams`: GET /teams"""
        return await self._call(Items[Team], "listTeams", {}, timeout, max_retries)

    async def get(self, team_id: str, *, timeout: float | None = None, max_retries: int | None = None) -> Team:
        """`getTeam`: GET /teams/{team_id}"""
        return await self._call(Team, "getTeam", {"team_id": team_id}, timeout, max_retries)

    async def update(
        self,
        team_id: str,
        *,
        name: str | UnsetType = UNSET,
        description: str | UnsetType | None = UNSET,
        orchestrator_id: str | UnsetType = UNSET,
        members: Sequence[TeamMemberParam] | UnsetType = UNSET,
        timeout: float | None = None,
    ) -> Team:
        """`updateTeam`: PUT /teams/{team_id}"""
        return await self._call(
            Team,
            "updateTeam",
            {
                "team_id": team_id,
                "name": name,
                "description": description,
                "orchestrator_id": orchestrator_id,
                "members": members,
            },
            timeout,
        )

    async def delete(self, team_id: str, *, timeout: float | None = None) -> None:
        """`deleteTeam`: DELETE /teams/{team_id}"""
        await self._do("deleteTeam", {"team_id": team_id}, timeout)


class AsyncModelsService(AsyncService):
    async def list(self, *, timeout: float | None = None, max_retries: int | None = None) -> ModelList:
        """`listModels`: GET /models"""
        return await self._call(ModelList, "listModels", {}, timeout, max_retries)


class AsyncApiKeysService(AsyncService):
    async def create(
        self,
        name: str,
        *,
        scopes: Sequence[Literal["completions:write"]] | UnsetType = UNSET,
        expires_at: Literal["30d", "90d", "1y", "never"] | UnsetType = UNSET,
        timeout: float | None = None,
    ) -> ApiKeyCreated:
        """`createApiKey`: POST /api-keys

        `token` is in this answer and never again: store it now. A key lasts 30 days by default.
        """
        return await self._call(
            ApiKeyCreated, "createApiKey", {"name": name, "scopes": scopes, "expires_at": expires_at}, timeout
        )

    async def list(self, *, timeout: float | None = None, max_retries: int | None = None) -> Items[ApiKey]:
        """`listApiKeys`: GET /api-keys"""
        return await self._call(Items[ApiKey], "listApiKeys", {}, timeout, max_retries)

    async def revoke(self, key_id: str, *, timeout: float | None = None) -> None:
        """`deleteApiKey`: DELETE /api-keys/{key_id}"""
        await self._do("deleteApiKey", {"key_id": key_id}, timeout)
