"""Generated from the contract by scripts/generate.py: do not edit."""

from __future__ import annotations

from typing import Any

from msgspec import field

from .base import Resource
from .costs import BillingState, UsageCost


class AttachmentConversion(Resource, frozen=True, kw_only=True):
    status: str
    error_code: str | None
    recoverable: bool
    next_retry_at: str | None
    retryable: bool


class BatchSizes(Resource, frozen=True, kw_only=True):
    inbox: int
    outbox: int


class CatalogEntry(Resource, frozen=True, kw_only=True):
    entry_id: str
    type: str
    target_id: str
    canonical_path: str
    description: str
    inserted_at: str


class Categories(Resource, frozen=True, kw_only=True):
    categories: list[Category]
    catalog_revision: int


class Category(Resource, frozen=True, kw_only=True):
    category_id: str
    name: str
    description: str


class CategoryIndex(Resource, frozen=True, kw_only=True):
    entries: list[CatalogEntry]
    total_count: int
    returned_count: int
    requested_range: IndexRange | None
    actual_range: IndexRange | None
    catalog_revision: int
    is_complete: bool


class ChatAttachment(Resource, frozen=True, kw_only=True):
    attachment_id: str
    workspace_id: str
    chat_id: str
    original_name: str
    mime_type: str
    byte_size: int
    lifecycle: str
    revision: int
    conversion: AttachmentConversion
    derived: dict[str, Any] | None
    expires_at: str
    attached_at: str | None
    usage_cost: UsageCost


class ConversionState(Resource, frozen=True, kw_only=True):
    status: str
    error_code: str | None = None
    recoverable: bool | None = None
    next_retry_at: str | None = None


class ImageGenerationAcceptedRecord(Resource, frozen=True, kw_only=True):
    id: str
    status: str
    provider: str
    initial_provider: str
    routed: bool
    model: str
    webhook_url: str
    status_url: str
    created_at: str
    expires_at: str


class ImageGenerationStatusRecord(Resource, frozen=True, kw_only=True):
    id: str
    status: str
    provider: str
    initial_provider: str
    routed: bool
    model: str
    created_at: str
    submitted_at: str | None
    completed_at: str | None
    expires_at: str
    result: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    files: list[dict[str, Any]] | None = None
    price: ImagePrice | None = None
    usage: ImageUsage | None = None
    cost_usd: float | None = None
    duration_ms: int | None = None


class ImagePrice(Resource, frozen=True, kw_only=True):
    amount: str
    currency: str
    source: str


class ImageUploadRecord(Resource, frozen=True, kw_only=True):
    id: str
    mime_type: str
    size: int
    original_filename: str
    expires_at: str
    created_at: str


class ImageUsage(Resource, frozen=True, kw_only=True):
    schema_version: int
    attempts_total: int
    attempts_priced: int


class IndexRange(Resource, frozen=True, kw_only=True):
    from_: int = field(name="from")
    to: int


class IndexingState(Resource, frozen=True, kw_only=True):
    status: str


class WikiOperation(Resource, frozen=True, kw_only=True):
    operation_id: str
    workspace_id: str
    kind: str
    status: str
    phase: str | None
    phases: dict[str, Any]
    started_at: str | None
    finished_at: str | None
    batch_sizes: BatchSizes
    billing: BillingState
    usage_cost: UsageCost


class WikiSource(Resource, frozen=True, kw_only=True):
    file_id: str
    workspace_id: str
    original_name: str
    mime_type: str
    byte_size: int
    lifecycle: str
    source_revision: int
    conversion: ConversionState
    indexing: IndexingState
    canonical_raw_path: str | None
    billing: BillingState
    usage_cost: UsageCost
    status_url: str
