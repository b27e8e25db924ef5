"""Generated from the contract by scripts/generate.py: do not edit."""

from __future__ import annotations

from datetime import datetime

from msgspec import field

from .base import Resource, Value
from .costs import BillingState, UsageCost
from .resources import PhaseResult


class AttachmentConversion(Resource, frozen=True, kw_only=True):
    status: str
    error_code: str | None
    recoverable: bool
    next_retry_at: datetime | None
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
    derived: ChatAttachmentDerived | None
    expires_at: datetime
    attached_at: datetime | None
    usage_cost: UsageCost


class ChatAttachmentDerived(Resource, frozen=True, kw_only=True):
    sha256: str
    bytes: int
    conversion: dict[str, Value]


class ConversionState(Resource, frozen=True, kw_only=True):
    status: str
    error_code: str | None = None
    recoverable: bool | None = None
    next_retry_at: datetime | None = None


class ImageGenerationAcceptedRecord(Resource, frozen=True, kw_only=True):
    id: str
    status: str
    provider: str
    initial_provider: str
    routed: bool
    model: str
    webhook_url: str
    status_url: str
    created_at: datetime
    expires_at: datetime


class ImageGenerationStatusError(Resource, frozen=True, kw_only=True):
    code: str | None = None
    message: str | None = None
    meta: dict[str, Value] | None = None


class ImageGenerationStatusFile(Resource, frozen=True, kw_only=True):
    artifact_id: str
    mime_type: str
    size: int
    download_url: str | None


class ImageGenerationStatusRecord(Resource, frozen=True, kw_only=True):
    id: str
    status: str
    provider: str
    initial_provider: str
    routed: bool
    model: str
    created_at: datetime
    submitted_at: datetime | None
    completed_at: datetime | None
    expires_at: datetime
    result: ImageGenerationStatusResult | None = None
    error: ImageGenerationStatusError | None = None
    files: list[ImageGenerationStatusFile] | None = None
    price: ImagePrice | None = None
    usage: ImageUsage | None = None
    cost_usd: float | None = None
    duration_ms: int | None = None


class ImageGenerationStatusResult(Resource, frozen=True, kw_only=True):
    model: str | None = None
    provider: str | None = None
    prompt: str | None = None
    images: list[ImageGenerationStatusResultImage] | None = None
    dimensions: ImageGenerationStatusResultDimensions | None = None
    aspect_ratio: str | None = None
    format: str | None = None
    quality: int | None = None
    warnings: dict[str, Value] | list[Value] | None = None


class ImageGenerationStatusResultDimensions(Resource, frozen=True, kw_only=True):
    width: int | None = None
    height: int | None = None


class ImageGenerationStatusResultImage(Resource, frozen=True, kw_only=True):
    provider_asset_id: str | None = None
    mime_type: str | None = None
    source_url: str | None = None
    format: str | None = None


class ImagePrice(Resource, frozen=True, kw_only=True):
    amount: str
    currency: str
    source: str


class ImageUploadRecord(Resource, frozen=True, kw_only=True):
    id: str
    mime_type: str
    size: int
    original_filename: str
    expires_at: datetime
    created_at: datetime


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
    phases: WikiOperationPhases
    started_at: str | None
    finished_at: str | None
    batch_sizes: BatchSizes
    billing: BillingState
    usage_cost: UsageCost


class WikiOperationPhases(Resource, frozen=True, kw_only=True):
    inbox: PhaseResult | None = None
    outbox: PhaseResult | None = None


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
