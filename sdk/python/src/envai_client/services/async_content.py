"""Generated from the contract by scripts/generate.py: do not edit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec import UNSET, UnsetType

from ..models import (
    Categories,
    CategoryIndex,
    ChatAttachment,
    ImageGenerationAcceptedRecord,
    ImageGenerationStatusRecord,
    ImageUploadRecord,
    ModelCatalogEntry,
    WikiOperation,
    WikiSource,
    WorkspaceFile,
)
from ..params import ImageDimensionsParam, InputImageParam
from ..requests import FileInput
from .async_base import AsyncByteStream, AsyncService

Items = list  # `list` is also a method name


class AsyncWorkspaceFilesService(AsyncService):
    async def read_or_list(
        self, workspace_id: str, path: str, *, timeout: float | None = None, max_retries: int | None = None
    ) -> WorkspaceFile:
        """`indexWorkspaceFiles`: GET /workspaces/{workspace_id}/files"""
        return await self._call(
            WorkspaceFile, "indexWorkspaceFiles", {"workspace_id": workspace_id, "path": path}, timeout, max_retries
        )

    async def create(
        self, workspace_id: str, path: str, content: str, *, timeout: float | None = None
    ) -> WorkspaceFile:
        """`createWorkspaceFile`: POST /workspaces/{workspace_id}/files"""
        return await self._call(
            WorkspaceFile,
            "createWorkspaceFile",
            {"workspace_id": workspace_id, "path": path, "content": content},
            timeout,
        )

    async def update(
        self, workspace_id: str, path: str, content: str, *, timeout: float | None = None
    ) -> WorkspaceFile:
        """`updateWorkspaceFile`: PUT /workspaces/{workspace_id}/files"""
        return await self._call(
            WorkspaceFile,
            "updateWorkspaceFile",
            {"workspace_id": workspace_id, "path": path, "content": content},
            timeout,
        )

    async def delete(
        self, workspace_id: str, path: str, *, recursive: bool | UnsetType = UNSET, timeout: float | None = None
    ) -> None:
        """`deleteWorkspaceFile`: DELETE /workspaces/{workspace_id}/files"""
        await self._do(
            "deleteWorkspaceFile", {"workspace_id": workspace_id, "path": path, "recursive": recursive}, timeout
        )

    async def download(self, workspace_id: str, path: str, *, timeout: float | None = None) -> AsyncByteStream:
        """`downloadWorkspaceFile`: GET /workspaces/{workspace_id}/files/download"""
        return await self._open("downloadWorkspaceFile", {"workspace_id": workspace_id, "path": path}, timeout)

    async def convert_to_pdf(self, workspace_id: str, path: str, *, timeout: float | None = None) -> AsyncByteStream:
        """`convertWorkspaceFileToPdf`: POST /workspaces/{workspace_id}/files/convert-to-pdf"""
        return await self._open("convertWorkspaceFileToPdf", {"workspace_id": workspace_id, "path": path}, timeout)

    async def upload_source(
        self,
        workspace_id: str,
        idempotency_key: str,
        file: FileInput,
        *,
        processing: Literal["convert", "original"] | UnsetType = UNSET,
        timeout: float | None = None,
    ) -> WikiSource:
        """`uploadWikiSource`: POST /workspaces/{workspace_id}/files/sources"""
        return await self._call(
            WikiSource,
            "uploadWikiSource",
            {"workspace_id": workspace_id, "idempotency_key": idempotency_key, "file": file, "processing": processing},
            timeout,
        )

    async def source_status(
        self, workspace_id: str, file_id: str, *, timeout: float | None = None, max_retries: int | None = None
    ) -> WikiSource:
        """`getWikiSource`: GET /workspaces/{workspace_id}/files/sources/{file_id}"""
        return await self._call(
            WikiSource, "getWikiSource", {"workspace_id": workspace_id, "file_id": file_id}, timeout, max_retries
        )

    async def download_source(
        self, workspace_id: str, file_id: str, *, timeout: float | None = None
    ) -> AsyncByteStream:
        """`downloadWikiSource`: GET /workspaces/{workspace_id}/files/sources/{file_id}/download"""
        return await self._open("downloadWikiSource", {"workspace_id": workspace_id, "file_id": file_id}, timeout)


class AsyncImagesService(AsyncService):
    async def generate(
        self,
        model: str,
        prompt: str,
        webhook_url: str,
        *,
        input_images: Sequence[InputImageParam] | UnsetType = UNSET,
        input_image: InputImageParam | UnsetType = UNSET,
        mask_image: InputImageParam | UnsetType = UNSET,
        objects_image: InputImageParam | UnsetType = UNSET,
        resolution: Literal["0.5k", "1k", "2k", "3k", "4k"] | UnsetType = UNSET,
        dimensions: ImageDimensionsParam | UnsetType = UNSET,
        aspect_ratio: Literal["1:1", "16:9", "9:16", "4:3", "3:4", "3:2", "2:3", "21:9", "9:21", "as_input_image"]
        | UnsetType = UNSET,
        format: Literal["png", "jpeg", "webp", "svg"] | UnsetType = UNSET,
        quality: int | UnsetType = UNSET,
        model_settings: Mapping[str, object] | UnsetType = UNSET,
        providers: Sequence[str] | UnsetType = UNSET,
        timeout: float | None = None,
    ) -> ImageGenerationAcceptedRecord:
        """`createImageGeneration`: POST /images/generations"""
        return await self._call(
            ImageGenerationAcceptedRecord,
            "createImageGeneration",
            {
                "model": model,
                "prompt": prompt,
                "webhook_url": webhook_url,
                "input_images": input_images,
                "input_image": input_image,
                "mask_image": mask_image,
                "objects_image": objects_image,
                "resolution": resolution,
                "dimensions": dimensions,
                "aspect_ratio": aspect_ratio,
                "format": format,
                "quality": quality,
                "model_settings": model_settings,
                "providers": providers,
            },
            timeout,
        )

    async def get_generation(
        self, record: str, *, timeout: float | None = None, max_retries: int | None = None
    ) -> ImageGenerationStatusRecord:
        """`getImageGeneration`: GET /images/generations/{record}"""
        return await self._call(
            ImageGenerationStatusRecord, "getImageGeneration", {"record": record}, timeout, max_retries
        )

    async def upload(self, file: FileInput, *, timeout: float | None = None) -> ImageUploadRecord:
        """`uploadImage`: POST /images/uploads"""
        return await self._call(ImageUploadRecord, "uploadImage", {"file": file}, timeout)

    async def list_models(
        self, *, timeout: float | None = None, max_retries: int | None = None
    ) -> Items[ModelCatalogEntry]:
        """`listImageModels`: GET /images/models"""
        return await self._call(Items[ModelCatalogEntry], "listImageModels", {}, timeout, max_retries)

    async def download_artifact(
        self,
        generation: str,
        artifact: str,
        signature: str,
        *,
        expires: int | UnsetType = UNSET,
        timeout: float | None = None,
    ) -> AsyncByteStream:
        """`downloadArtifact`: GET /artifacts/download

        For the parts of a signed URL; `download_signed` takes the URL as it was given.
        """
        return await self._open(
            "downloadArtifact",
            {"generation": generation, "artifact": artifact, "expires": expires, "signature": signature},
            timeout,
        )


class AsyncAttachmentsService(AsyncService):
    async def upload(
        self, workspace_id: str, chat_id: str, idempotency_key: str, file: FileInput, *, timeout: float | None = None
    ) -> ChatAttachment:
        """`uploadChatAttachment`: POST /workspaces/{workspace_id}/chats/{chat_id}/attachments"""
        return await self._call(
            ChatAttachment,
            "uploadChatAttachment",
            {"workspace_id": workspace_id, "chat_id": chat_id, "idempotency_key": idempotency_key, "file": file},
            timeout,
        )

    async def list(
        self, workspace_id: str, chat_id: str, *, timeout: float | None = None, max_retries: int | None = None
    ) -> Items[ChatAttachment]:
        """`listChatAttachments`: GET /workspaces/{workspace_id}/chats/{chat_id}/attachments"""
        return await self._call(
            Items[ChatAttachment],
            "listChatAttachments",
            {"workspace_id": workspace_id, "chat_id": chat_id},
            timeout,
            max_retries,
        )

    async def get(
        self,
        workspace_id: str,
        chat_id: str,
        attachment_id: str,
        *,
        timeout: float | None = None,
        max_retries: int | None = None,
    ) -> ChatAttachment:
        """`getChatAttachment`: GET /workspaces/{workspace_id}/chats/{chat_id}/attachments/{attachment_id}"""
        return await self._call(
            ChatAttachment,
            "getChatAttachment",
            {"workspace_id": workspace_id, "chat_id": chat_id, "attachment_id": attachment_id},
            timeout,
            max_retries,
        )

    async def delete(
        self, workspace_id: str, chat_id: str, attachment_id: str, *, timeout: float | None = None
    ) -> ChatAttachment:
        """`deleteChatAttachment`: DELETE /workspaces/{workspace_id}/chats/{chat_id}/attachments/{attachment_id}"""
        return await self._call(
            ChatAttachment,
            "deleteChatAttachment",
            {"workspace_id": workspace_id, "chat_id": chat_id, "attachment_id": attachment_id},
            timeout,
        )

    async def retry(
        self, workspace_id: str, chat_id: str, attachment_id: str, idempotency_key: str, *, timeout: float | None = None
    ) -> ChatAttachment:
        """`retryChatAttachment`: POST /workspaces/{workspace_id}/chats/{chat_id}/attachments/{attachment_id}/retry"""
        return await self._call(
            ChatAttachment,
            "retryChatAttachment",
            {
                "workspace_id": workspace_id,
                "chat_id": chat_id,
                "attachment_id": attachment_id,
                "idempotency_key": idempotency_key,
            },
            timeout,
        )

    async def download(
        self,
        workspace_id: str,
        chat_id: str,
        attachment_id: str,
        kind: Literal["original", "derived"],
        *,
        timeout: float | None = None,
    ) -> AsyncByteStream:
        """`downloadChatAttachment`"""
        return await self._open(
            "downloadChatAttachment",
            {"workspace_id": workspace_id, "chat_id": chat_id, "attachment_id": attachment_id, "kind": kind},
            timeout,
        )


class AsyncWikiService(AsyncService):
    async def withdraw(self, workspace_id: str, file_id: str, *, timeout: float | None = None) -> WikiSource:
        """`withdrawWikiSource`: POST /workspaces/{workspace_id}/wiki/outbox/files"""
        return await self._call(
            WikiSource, "withdrawWikiSource", {"workspace_id": workspace_id, "file_id": file_id}, timeout
        )

    async def inbox(
        self, workspace_id: str, idempotency_key: str, webhook_url: str, *, timeout: float | None = None
    ) -> WikiOperation:
        """`createWikiInboxRun`: POST /workspaces/{workspace_id}/wiki/inbox/runs"""
        return await self._call(
            WikiOperation,
            "createWikiInboxRun",
            {"workspace_id": workspace_id, "idempotency_key": idempotency_key, "webhook_url": webhook_url},
            timeout,
        )

    async def outbox(
        self, workspace_id: str, idempotency_key: str, webhook_url: str, *, timeout: float | None = None
    ) -> WikiOperation:
        """`createWikiOutboxRun`: POST /workspaces/{workspace_id}/wiki/outbox/runs"""
        return await self._call(
            WikiOperation,
            "createWikiOutboxRun",
            {"workspace_id": workspace_id, "idempotency_key": idempotency_key, "webhook_url": webhook_url},
            timeout,
        )

    async def sync(
        self, workspace_id: str, idempotency_key: str, webhook_url: str, *, timeout: float | None = None
    ) -> WikiOperation:
        """`createWikiSyncRun`: POST /workspaces/{workspace_id}/wiki/syncs"""
        return await self._call(
            WikiOperation,
            "createWikiSyncRun",
            {"workspace_id": workspace_id, "idempotency_key": idempotency_key, "webhook_url": webhook_url},
            timeout,
        )

    async def operation(
        self, workspace_id: str, operation_id: str, *, timeout: float | None = None, max_retries: int | None = None
    ) -> WikiOperation:
        """`getWikiOperation`: GET /workspaces/{workspace_id}/wiki/operations/{operation_id}"""
        return await self._call(
            WikiOperation,
            "getWikiOperation",
            {"workspace_id": workspace_id, "operation_id": operation_id},
            timeout,
            max_retries,
        )

    async def categories(
        self, workspace_id: str, *, timeout: float | None = None, max_retries: int | None = None
    ) -> Categories:
        """`listWikiCategories`: GET /workspaces/{workspace_id}/wiki/categories"""
        return await self._call(Categories, "listWikiCategories", {"workspace_id": workspace_id}, timeout, max_retries)

    async def category_index(
        self,
        workspace_id: str,
        category_id: str,
        *,
        from_: int | UnsetType = UNSET,
        to: int | UnsetType = UNSET,
        all_: bool | UnsetType = UNSET,
        type_: Literal["raw", "artifact"] | UnsetType = UNSET,
        catalog_revision: int | UnsetType = UNSET,
        timeout: float | None = None,
        max_retries: int | None = None,
    ) -> CategoryIndex:
        """`getWikiCategoryIndex`: GET /workspaces/{workspace_id}/wiki/categories/{category_id}/index"""
        return await self._call(
            CategoryIndex,
            "getWikiCategoryIndex",
            {
                "workspace_id": workspace_id,
                "category_id": category_id,
                "from_": from_,
                "to": to,
                "all_": all_,
                "type_": type_,
                "catalog_revision": catalog_revision,
            },
            timeout,
            max_retries,
        )
