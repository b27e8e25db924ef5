"""The one error class, the closed set of codes, and the closed set of reasons.

A `GatewayError` is raised where the fault is known, with its `Reason`. The reason decides the `Code`, and the code
decides what a door answers, unless the door's table has a row for the reason itself. The sentence of a reason is in
`core/locale/`, once per language; its placeholders are the details. Nothing an upstream said, no key and no prompt may
be a detail: details are ours (names, indexes, limits).
"""

from __future__ import annotations

from enum import StrEnum
from typing import Self

import msgspec


class Code(StrEnum):
    """Every way a call can fail, as doors tell them apart. Doors own the status and the wire word."""

    INVALID_REQUEST = "invalid_request"
    UNAUTHENTICATED = "unauthenticated"
    FORBIDDEN = "forbidden"
    AGENT_NOT_ENABLED = "agent_not_enabled"
    DOCUMENTS_NOT_ENABLED = "documents_not_enabled"
    IMAGES_NOT_ENABLED = "images_not_enabled"
    METHOD_NOT_ALLOWED = "method_not_allowed"
    NOT_FOUND = "not_found"
    CONFLICT = "conflict"
    TOO_LARGE = "too_large"
    RATE_LIMITED = "rate_limited"
    CONCURRENCY_LIMITED = "concurrency_limited"
    BUDGET_EXHAUSTED = "budget_exhausted"
    MODEL_UNPRICED = "model_unpriced"
    UNSUPPORTED = "unsupported"
    REFUSED = "refused"
    UPSTREAM_FAILED = "upstream_failed"
    UPSTREAM_OVERLOADED = "upstream_overloaded"
    UPSTREAM_TIMEOUT = "upstream_timeout"
    UPSTREAM_REJECTED = "upstream_rejected"
    UNAVAILABLE = "unavailable"
    DRAINING = "draining"
    INTERNAL = "internal"


class Reason(StrEnum):
    """Everything an error can tell. To add one: a line here, and its sentence in each `core/locale/*.toml`."""

    code: Code

    def __new__(cls, key: str, code: Code = Code.INVALID_REQUEST) -> Self:
        """key: of the sentence. code: the kind of failure that it is."""
        reason = str.__new__(cls, key)
        reason._value_ = key
        reason.code = code
        return reason

    # The reason of each code when there is nothing more to tell; further down are the exact ones.
    INVALID_REQUEST = "invalid_request"
    UNAUTHENTICATED = "unauthenticated", Code.UNAUTHENTICATED
    FORBIDDEN = "forbidden", Code.FORBIDDEN
    AGENT_NOT_ENABLED = "agent_not_enabled", Code.AGENT_NOT_ENABLED
    DOCUMENTS_NOT_ENABLED = "documents_not_enabled", Code.DOCUMENTS_NOT_ENABLED
    IMAGES_NOT_ENABLED = "images_not_enabled", Code.IMAGES_NOT_ENABLED
    METHOD_NOT_ALLOWED = "method_not_allowed", Code.METHOD_NOT_ALLOWED
    NOT_FOUND = "not_found", Code.NOT_FOUND
    CONFLICT = "conflict", Code.CONFLICT
    TOO_LARGE = "too_large", Code.TOO_LARGE
    RATE_LIMITED = "rate_limited", Code.RATE_LIMITED
    CONCURRENCY_LIMITED = "concurrency_limited", Code.CONCURRENCY_LIMITED
    BUDGET_EXHAUSTED = "budget_exhausted", Code.BUDGET_EXHAUSTED
    MODEL_UNPRICED = "model_unpriced", Code.MODEL_UNPRICED
    UNSUPPORTED = "unsupported", Code.UNSUPPORTED
    REFUSED = "refused", Code.REFUSED
    UPSTREAM_FAILED = "upstream_failed", Code.UPSTREAM_FAILED
    UPSTREAM_OVERLOADED = "upstream_overloaded", Code.UPSTREAM_OVERLOADED
    UPSTREAM_TIMEOUT = "upstream_timeout", Code.UPSTREAM_TIMEOUT
    UPSTREAM_REJECTED = "upstream_rejected", Code.UPSTREAM_REJECTED
    UNAVAILABLE = "unavailable", Code.UNAVAILABLE
    DRAINING = "draining", Code.DRAINING
    INTERNAL = "internal", Code.INTERNAL
    JSON_MALFORMED = "json_malformed"
    JSON_NOT_UTF8 = "json_not_utf8"
    JSON_SHAPE = "json_shape"
    JSON_SHAPE_WHOLE = "json_shape_whole"

    # Engines.
    UPSTREAM_UNREACHABLE = "upstream_unreachable", Code.UPSTREAM_FAILED
    UPSTREAM_UNTRUSTED = "upstream_untrusted", Code.UPSTREAM_FAILED
    UPSTREAM_CUT = "upstream_cut", Code.UPSTREAM_FAILED
    UPSTREAM_TOO_LARGE = "upstream_too_large", Code.UPSTREAM_FAILED
    UPSTREAM_ANSWER_TOO_LARGE = "upstream_answer_too_large", Code.UPSTREAM_FAILED
    UPSTREAM_MALFORMED = "upstream_malformed", Code.UPSTREAM_FAILED
    UPSTREAM_KEY_REFUSED = "upstream_key_refused", Code.UPSTREAM_FAILED
    ENGINE_KEY_MISSING = "engine_key_missing", Code.UNAVAILABLE
    ENGINE_KEY_MALFORMED = "engine_key_malformed", Code.UNAVAILABLE
    UPSTREAM_QUOTA = "upstream_quota", Code.UPSTREAM_FAILED
    TOOL_ARGUMENTS_MALFORMED = "tool_arguments_malformed", Code.UPSTREAM_FAILED
    TOOL_SCHEMA_WRONG = "tool_schema_wrong"
    CONVERSATION_ENDS_WITH_ASSISTANT = "conversation_ends_with_assistant"

    # Scripts of the scripted engine; rules and steps are counted from 1.
    SCRIPT_RULE_WRONG = "script_rule_wrong"
    SCRIPT_STEP_WRONG = "script_step_wrong"
    SCRIPT_STEP_UNKNOWN = "script_step_unknown"
    SCRIPT_STEP_AFTER_END = "script_step_after_end"
    SCRIPT_STEP_AFTER_HALF_TOOL = "script_step_after_half_tool"
    SCRIPT_ID_TWICE = "script_id_twice"
    SCRIPT_STOP_WRONG = "script_stop_wrong"
    SCRIPT_NO_RULE = "script_no_rule", Code.UPSTREAM_REJECTED

    # Addresses, documents and photos that a caller sends. What a refused address is or answers is never told.
    FETCH_MALFORMED = "fetch_malformed"
    FETCH_CREDENTIALS = "fetch_credentials"
    FETCH_SCHEME = "fetch_scheme"
    FETCH_HOST = "fetch_host"
    FETCH_PORT = "fetch_port"
    FETCH_FAILED = "fetch_failed"
    FETCH_SLOW = "fetch_slow"
    FETCH_REDIRECTS = "fetch_redirects"
    FETCH_TYPE = "fetch_type"
    FETCH_LARGE = "fetch_large"

    # Storage.
    SCHEMA_NEWER = "schema_newer", Code.UNAVAILABLE
    MIGRATION_FAILED = "migration_failed", Code.UNAVAILABLE
    DATABASE_UNREADABLE = "database_unreadable", Code.UNAVAILABLE

    # The pepper door and calls.
    MESSAGES_EMPTY = "messages_empty"
    CONTENT_EMPTY = "content_empty"
    TOOL_CALL_UNNAMED = "tool_call_unnamed"
    TOOL_RESULT_MISSING = "tool_result_missing"
    TOOL_RESULT_UNKNOWN = "tool_result_unknown"
    TOOL_RESULT_REPEATED = "tool_result_repeated"
    TOOL_UNNAMED = "tool_unnamed"
    TOOL_NAME_REFUSED = "tool_name_refused"
    TOOL_REPEATED = "tool_repeated"
    PARAMETERS_NOT_OBJECT = "parameters_not_object"
    BODY_TOO_SLOW = "body_too_slow"
    BODIES_BUSY = "bodies_busy", Code.UNAVAILABLE
    MODEL_MISSING = "model_missing", Code.UNAVAILABLE
    PART_REFUSED = "part_refused"
    FILES_MANY = "files_many"
    URLS_MANY = "urls_many"
    URLS_OFF = "urls_off"
    SOURCE_ONE_OF = "source_one_of"
    BASE64_MALFORMED = "base64_malformed"
    FILE_EMPTY = "file_empty"
    FILE_LARGE = "file_large"
    ENGINE_NO_IMAGES = "engine_no_images", Code.UNSUPPORTED
    PDF_WITHOUT_TEXT = "pdf_without_text", Code.UNSUPPORTED
    TYPE_NOT_ACCEPTED = "type_not_accepted"
    FILE_HEAVY = "file_heavy"
    FILE_SLOW = "file_slow"
    FILE_BROKE = "file_broke"
    FILES_BUSY = "files_busy", Code.UNAVAILABLE
    PDF_DAMAGED = "pdf_damaged"
    PDF_TRUNCATED = "pdf_truncated"
    PDF_ENCRYPTED = "pdf_encrypted"
    PDF_EMPTY = "pdf_empty"
    PDF_PAGES = "pdf_pages"
    PDF_PAGE_SIZE = "pdf_page_size"
    IMAGE_DAMAGED = "image_damaged"
    IMAGE_PIXELS = "image_pixels"
    KEY_FILE_UNREADABLE = "key_file_unreadable", Code.UNAVAILABLE
    HOME_IN_USE = "home_in_use", Code.CONFLICT

    # Declarations and settings.
    DECLARATION_REFUSED = "declaration_refused"
    FIELD_TYPE = "field_type"
    FIELD_CHOICE = "field_choice"
    FIELD_MISSING = "field_missing"
    FIELD_UNKNOWN = "field_unknown"
    FIELD_UNKNOWN_NEAR = "field_unknown_near"
    TABLE_OF_APPLY = "table_of_apply"
    TABLE_OF_SERVE = "table_of_serve"
    FILE_MISSING = "file_missing"
    FILE_MALFORMED = "file_malformed"
    NUMBER_BETWEEN = "number_between"
    NUMBER_POSITIVE = "number_positive"
    NUMBER_NOT_NEGATIVE = "number_not_negative"
    SECRET_WEAK = "secret_weak"  # noqa: S105
    TOKEN_BESIDE_PROXY = "token_beside_proxy"  # noqa: S105

    # The embedded model.
    EMBEDDED_MISSING = "embedded_missing", Code.UNAVAILABLE
    EMBEDDED_UNKNOWN = "embedded_unknown", Code.NOT_FOUND
    EMBEDDED_RUNTIME_MISSING = "embedded_runtime_missing", Code.UNAVAILABLE
    EMBEDDED_LOAD_FAILED = "embedded_load_failed", Code.UNAVAILABLE
    EMBEDDED_CRASHED = "embedded_crashed", Code.UPSTREAM_FAILED
    EMBEDDED_CLOSED = "embedded_closed", Code.UNAVAILABLE
    EMBEDDED_BUSY = "embedded_busy", Code.UPSTREAM_OVERLOADED
    EMBEDDED_PROMPT_TOO_LONG = "embedded_prompt_too_long"
    EMBEDDED_PULL_FAILED = "embedded_pull_failed", Code.UNAVAILABLE
    EMBEDDED_PULL_RUNNING = "embedded_pull_running", Code.CONFLICT
    EMBEDDED_PULL_DISK = "embedded_pull_disk", Code.UNAVAILABLE
    EMBEDDED_PULL_SPACE = "embedded_pull_space", Code.UNAVAILABLE
    ENGINE_MISSING = "engine_missing", Code.UNAVAILABLE
    ENGINE_UNUSABLE = "engine_unusable", Code.UNAVAILABLE
    ADDRESS_TAKEN = "address_taken", Code.UNAVAILABLE
    TABLE_LIST = "table_list"
    TEXT_LONG = "text_long"
    NAME_SHAPE = "name_shape"
    NAME_HEADER = "name_header"
    NAME_TWICE = "name_twice"
    UNSET_REQUIRED = "unset_required"
    UNSET_GIVEN = "unset_given"
    NAME_UNKNOWN = "name_unknown", Code.NOT_FOUND
    KEY_SHAPE = "key_shape"
    PROVIDER_KEY_SHAPE = "provider_key_shape"
    KEY_TWICE = "key_twice"
    KEY_TAKEN = "key_taken"
    ADDRESS_SHAPE = "address_shape"
    VARIABLE_SHAPE = "variable_shape"
    SCRIPT_ELSEWHERE = "script_elsewhere"
    RESERVE_ITSELF = "reserve_itself"
    ZONE_UNKNOWN = "zone_unknown"
    ZONES_MISSING = "zones_missing"
    SOFT_ABOVE_HARD = "soft_above_hard"
    VALUE_UNSTORABLE = "value_unstorable"
    LEADER_NOT_PRIMARY = "leader_not_primary"
    VOICE_FIXED = "voice_fixed"
    HOME_NOT_INITIALISED = "home_not_initialised", Code.CONFLICT
    HOME_INITIALISED = "home_initialised", Code.CONFLICT
    HOME_NOT_WRITTEN = "home_not_written", Code.UNAVAILABLE
    STORE_NOT_WRITTEN = "store_not_written", Code.UNAVAILABLE

    # The command line.
    CLI_BAD_URL = "cli_bad_url"
    CLI_UNREACHABLE = "cli_unreachable", Code.UNAVAILABLE
    ASK_REFUSED = "ask_refused", Code.UNAVAILABLE
    ASK_CUT = "ask_cut", Code.UNAVAILABLE
    ASK_NO_PROJECT = "ask_no_project", Code.NOT_FOUND

    # The event log.
    CURSOR_EXPIRED = "cursor_expired", Code.CONFLICT

    # The answer's form.
    FORMAT_UNSUPPORTED = "format_unsupported", Code.UNSUPPORTED
    FORMAT_WITH_TOOLS = "format_with_tools", Code.UNSUPPORTED

    # What the panel changes.
    STILL_USED = "still_used", Code.CONFLICT

    # The control plane and its door.
    API_KEY_INVALID = "api_key_invalid", Code.UNAUTHENTICATED
    OBJECT_MISSING = "object_missing", Code.NOT_FOUND
    LIMIT_REACHED = "limit_reached"
    TOO_MANY_REQUESTS = "too_many_requests", Code.RATE_LIMITED
    UNSUPPORTED_CONTRACT_VERSION = "unsupported_contract_version", Code.UNSUPPORTED
    CONTRACT_UPGRADE_REQUIRED = "contract_upgrade_required", Code.UNSUPPORTED
    DATA_INVALID = "data_invalid"
    BODY_NOT_OBJECT = "body_not_object"
    JSON_TOO_DEEP = "json_too_deep"
    QUERY_MALFORMED = "query_malformed"
    FIELD_NOT_OFFERED = "field_not_offered"
    NAME_RESERVED = "name_reserved"
    MOMENT_SHAPE = "moment_shape"
    GIVEN_TWICE = "given_twice"
    MODEL_NOT_OFFERED = "model_not_offered"
    AGENT_UNREADABLE = "agent_unreadable", Code.CONFLICT
    CONFIG_MAX_TOKENS = "config_max_tokens"
    CONFIG_VALUE = "config_value"
    TOOL_RULE_UNKNOWN = "tool_rule_unknown"
    LEADS_TEAMS = "leads_teams"
    TEAM_HAS_CHATS = "team_has_chats"
    ORCHESTRATOR_WRONG = "orchestrator_wrong"
    ORCHESTRATOR_IS_MEMBER = "orchestrator_is_member"
    MEMBER_WRONG = "member_wrong"
    MEMBER_TWICE = "member_twice"
    TEAM_WRONG = "team_wrong"
    SETUP_LINK_USED = "setup_link_used", Code.UNAUTHENTICATED
    PASSWORD_WRONG = "password_wrong", Code.UNAUTHENTICATED
    ATTEMPTS_MANY = "attempts_many", Code.RATE_LIMITED
    NAME_TAKEN = "name_taken"
    CHANGED_MEANWHILE = "changed_meanwhile", Code.CONFLICT
    OTHER_SITE = "other_site", Code.FORBIDDEN
    SIGN_IN_FIRST = "sign_in_first", Code.UNAUTHENTICATED

    # Money and the classic API.
    BUDGET_IN_USE = "budget_in_use", Code.BUDGET_EXHAUSTED
    PASSWORD_LENGTH = "password_length"  # noqa: S105
    PASSWORD_DIFFERS = "password_differs"  # noqa: S105
    WEBHOOK_SHAPE = "webhook_shape"
    PROJECT_MISSING = "project_missing", Code.NOT_FOUND
    CORRECTION_REASON = "correction_reason"
    CORRECTION_CREDIT = "correction_credit"
    CORRECTION_AMOUNT = "correction_amount"

    # Pieces that an app has to send back.
    BLOCKS_NEEDED = "blocks_needed"
    JSON_PART = "json_part"
    SEARCH_FAILED = "search_failed", Code.UPSTREAM_FAILED
    ENCODE_UNKNOWN = "encode_unknown"
    CONVERSATION_NAME = "conversation_name"
    CONTENUTO_EMPTY = "contenuto_empty"

    # The responses door.
    SCOPE_MISSING = "scope_missing", Code.FORBIDDEN
    PROXY_ATTRIBUTION = "proxy_attribution", Code.FORBIDDEN
    HOST_UNKNOWN = "host_unknown", Code.FORBIDDEN
    AUTH_ATTEMPTS = "auth_attempts", Code.RATE_LIMITED
    SESSION_RESERVED = "session_reserved"
    SESSION_LONG = "session_long"
    SESSION_BUSY = "session_busy", Code.CONFLICT
    SESSION_MOVED = "session_moved", Code.CONFLICT
    MODEL_INVALID = "model_invalid"
    MODEL_UNKNOWN = "model_unknown", Code.NOT_FOUND
    MODEL_ID_MISSING = "model_id_missing"
    MODEL_ID_ENCODING = "model_id_encoding"
    AGENT_UNKNOWN = "agent_unknown"
    AGENT_UNCLEAR = "agent_unclear"
    AGENT_WITHOUT_MODEL = "agent_without_model", Code.UNAVAILABLE
    FIELD_NEEDED = "field_needed"
    PART_UNKNOWN = "part_unknown"
    ITEMS_MANY = "items_many"
    ROLE_UNKNOWN = "role_unknown"
    FILE_ID_UNKNOWN = "file_id_unknown"
    OUTPUT_MISSING = "output_missing"
    OUTPUT_WITHOUT_CALL = "output_without_call"
    OUTPUT_REPEATED = "output_repeated"
    FIELD_UNSUPPORTED = "field_unsupported", Code.UNSUPPORTED
    FIELD_ELSEWHERE = "field_elsewhere", Code.UNSUPPORTED
    IDENTIFIER_LONG = "identifier_long"
    COMPACTION_UNKNOWN = "compaction_unknown"
    INPUT_EMPTY = "input_empty"
    CHAT_EMPTY = "chat_empty"
    TOOL_NAME = "tool_name"
    CHOICE_UNKNOWN = "choice_unknown"
    CHOICE_WITHOUT_TOOLS = "choice_without_tools"
    CHOICE_OF_UNKNOWN = "choice_of_unknown"
    TOOL_MADE_UP = "tool_made_up", Code.UPSTREAM_FAILED
    CHOICE_UNMET = "choice_unmet", Code.UPSTREAM_FAILED
    FORMAT_UNKNOWN = "format_unknown"
    NUMBER_WITHIN = "number_within"
    NUMBER_LEAST = "number_least"
    TRUNCATION_UNKNOWN = "truncation_unknown"
    BACKGROUND_UNSTORED = "background_unstored"
    BACKGROUND_BUSY = "background_busy", Code.UNAVAILABLE
    METADATA_LARGE = "metadata_large"
    PREVIOUS_RESPONSE_MISSING = "previous_response_missing"
    RESPONSE_MISSING = "response_missing", Code.NOT_FOUND
    CANCEL_FOREGROUND = "cancel_foreground"
    CURSOR_UNKNOWN = "cursor_unknown"
    MESSAGE_UNKNOWN = "message_unknown"
    CONNECTION_OVER = "connection_over"
    CONNECTION_FLOODED = "connection_flooded", Code.RATE_LIMITED
    STOP_MALFORMED = "stop_malformed"
    MODEL_MISSING_EMBEDDINGS = "model_missing_embeddings"
    EMBEDDINGS_TEXTS = "embeddings_texts"
    EMBEDDINGS_EMPTY = "embeddings_empty"
    EMBEDDINGS_MANY = "embeddings_many"
    EMBEDDINGS_LONG = "embeddings_long"
    EMBEDDINGS_LARGE = "embeddings_large"
    ENCODING_UNKNOWN = "encoding_unknown"
    EMBEDDINGS_NONE = "embeddings_none", Code.UNSUPPORTED
    EMBEDDINGS_MODEL = "embeddings_model", Code.UNSUPPORTED
    EMBEDDINGS_DIMENSIONS = "embeddings_dimensions", Code.UNSUPPORTED

    # Turns.
    TURN_IN_PROGRESS = "turn_in_progress", Code.CONFLICT
    NO_TURN_IN_PROGRESS = "no_turn_in_progress", Code.CONFLICT
    IDEMPOTENCY_CONFLICT = "idempotency_conflict", Code.CONFLICT
    TOOL_CALL_MISSING = "tool_call_missing", Code.NOT_FOUND
    TOOL_ALREADY_RESOLVED = "tool_already_resolved", Code.CONFLICT
    TOOL_TIMED_OUT = "tool_timed_out", Code.CONFLICT
    TOOL_CLAIMED = "tool_claimed", Code.CONFLICT
    APPROVAL_MISSING = "approval_missing", Code.NOT_FOUND
    APPROVAL_ALREADY_RESOLVED = "approval_already_resolved", Code.CONFLICT
    APPROVAL_EXPIRED = "approval_expired", Code.CONFLICT
    INVALID_FORK_DESTINATION = "invalid_fork_destination"
    INVALID_ORCHESTRATOR_CONTEXT = "invalid_orchestrator_context"
    AGENT_NOT_RUNNING = "agent_not_running"
    TEAM_UNAVAILABLE = "team_unavailable", Code.CONFLICT
    CONTEXT_UNAVAILABLE = "context_unavailable", Code.UNAVAILABLE
    AFTER_INVALID = "after_invalid"
    ATTACHMENT_MISSING = "attachment_missing"
    IDEMPOTENCY_KEY_SHAPE = "idempotency_key_shape"
    IDEMPOTENCY_KEY_NEEDED = "idempotency_key_needed"
    MCP_UNKNOWN = "mcp_unknown", Code.UNAVAILABLE
    MCP_UNREACHABLE = "mcp_unreachable", Code.UNAVAILABLE
    MCP_NOT_INSTALLED = "mcp_not_installed", Code.UNAVAILABLE

    # Files of workspaces.
    PATH_WRONG = "path_wrong"
    FILE_TOO_LARGE = "file_too_large", Code.TOO_LARGE
    FILE_NOT_TEXT = "file_not_text"
    FILE_IN_THE_WAY = "file_in_the_way", Code.CONFLICT
    FILE_LIMITS = "file_limits"
    MEMORY_LIMIT = "memory_limit"

    # Files of workspaces, attachments, images.
    FILE_NOT_FOUND = "file_not_found", Code.NOT_FOUND
    FILE_IS_FOLDER = "file_is_folder", Code.CONFLICT
    FILE_NOT_FOLDER = "file_not_folder", Code.CONFLICT
    FOLDER_NOT_EMPTY = "folder_not_empty", Code.CONFLICT
    FOLDER_PROTECTED = "folder_protected", Code.CONFLICT
    FILES_UNAVAILABLE = "files_unavailable", Code.UNAVAILABLE
    PDF_SOURCE = "pdf_source"
    DOCUMENT_UNSET = "document_unset"
    PDF_NOT_INSTALLED = "pdf_not_installed", Code.UNSUPPORTED
    PDF_TOO_LARGE = "pdf_too_large", Code.TOO_LARGE
    ATTACHMENT_TYPE = "attachment_type"
    ATTACHMENT_DIFFERS = "attachment_differs"
    ATTACHMENTS_QUOTA = "attachments_quota"
    ATTACHMENT_DELETED = "attachment_deleted", Code.CONFLICT
    ATTACHMENT_NATIVE = "attachment_native", Code.CONFLICT
    ATTACHMENT_RETRY_NOT_PERMITTED = "attachment_retry_not_permitted", Code.CONFLICT
    FILE_NAME_WRONG = "file_name_wrong"
    FORM_NEEDED = "form_needed"
    FORM_MALFORMED = "form_malformed"
    IMAGE_WISH_UNSUPPORTED = "image_wish_unsupported", Code.UNSUPPORTED
    IMAGE_MODEL_UNKNOWN = "image_model_unknown", Code.UNSUPPORTED
    IMAGE_PROVIDER_OTHER = "image_provider_other"
    IMAGES_BUDGET = "images_budget"
    UPLOAD_MISSING = "upload_missing"
    UPLOADS_QUOTA = "uploads_quota"
    GENERATION_INTERRUPTED = "generation_interrupted", Code.UNAVAILABLE
    WEBHOOK_NONE = "webhook_none", Code.METHOD_NOT_ALLOWED
    WEBHOOK_PROVIDER = "webhook_provider"
    WEBHOOK_SIGNATURE = "webhook_signature", Code.UNAUTHENTICATED

    # Watching.
    STEER_LENGTH = "steer_length"
    OUTPUT_LONG = "output_long"
    ATTACHMENT_UNHEARD = "attachment_unheard"

    # Signing keys.
    SIGNING_KEY_MISSING = "signing_key_missing", Code.NOT_FOUND
    SIGNING_KEY_SIGNS = "signing_key_signs", Code.CONFLICT

    # JSON Schemas of tools.
    SCHEMA_LARGE = "schema_large"
    SCHEMA_DEEP = "schema_deep"
    SCHEMA_DIALECT = "schema_dialect"
    SCHEMA_NEEDED = "schema_needed"
    SCHEMA_KEYWORD = "schema_keyword"
    SCHEMA_REFERENCE_REMOTE = "schema_reference_remote"
    SCHEMA_REFERENCE_LOST = "schema_reference_lost"

    # What a body of the wrong shape should have been. Each goes on after a field: «'max_tokens' must be a number».
    SHAPE_KIND = "shape_kind"
    SHAPE_KIND_FOUND = "shape_kind_found"
    SHAPE_WRONG = "shape_wrong"
    SHAPE_HUGE = "shape_huge"
    SHAPE_LEAST = "shape_least"
    SHAPE_MOST = "shape_most"
    SHAPE_ABOVE = "shape_above"
    SHAPE_BELOW = "shape_below"
    SHAPE_TEXT_SHORT = "shape_text_short"
    SHAPE_TEXT_LONG = "shape_text_long"
    SHAPE_LIST_SHORT = "shape_list_short"
    SHAPE_LIST_LONG = "shape_list_long"
    SHAPE_LIST_LENGTH = "shape_list_length"
    SHAPE_OBJECT_SHORT = "shape_object_short"
    SHAPE_OBJECT_LONG = "shape_object_long"
    SHAPE_PATTERN = "shape_pattern"
    SHAPE_MOMENT = "shape_moment"

    # What a body of the Envai API refuses by itself; each goes on after a field.
    CHANGE_EMPTY = "change_empty"
    FIELD_NOT_YOURS = "field_not_yours"
    FIELD_BLANK = "field_blank"
    FIELD_NOT_OBJECT = "field_not_object"
    SCHEMA_NOT_OBJECT = "schema_not_object"
    TOOLS_UNNAMED = "tools_unnamed"
    GIVEN_TWICE_INSIDE = "given_twice_inside"
    OUTPUT_SIZE = "output_size"
    INPUT_IMAGE_AND_IMAGES = "input_image_and_images"
    INPUT_IMAGE_NEEDED = "input_image_needed"

    # How much may be kept.
    WORKSPACE_ENTRIES = "workspace_entries"
    WORKSPACE_BYTES = "workspace_bytes"

    # Runs of agents.
    CHOICE_OF = "choice_of"
    TOOL_IS_OWN = "tool_is_own"
    RUN_CANCELLED = "run_cancelled", Code.CONFLICT
    RUN_FAILED = "run_failed", Code.UPSTREAM_FAILED
    CONTEXT_EXCEEDED = "context_exceeded"
    ANSWER_LOST = "answer_lost", Code.UNAVAILABLE


class Word(StrEnum):
    """A phrase that is no reason by itself, in the reader's language: a detail of one, or a line of a report."""

    KIND_OR = "kind_or"
    KIND_INT = "kind_int"
    KIND_FLOAT = "kind_float"
    KIND_STR = "kind_str"
    KIND_BOOL = "kind_bool"
    KIND_NULL = "kind_null"
    KIND_ARRAY = "kind_array"
    KIND_OBJECT = "kind_object"
    KIND_DATETIME = "kind_datetime"
    KIND_DATE = "kind_date"
    KIND_UUID = "kind_uuid"

    REASONING_LOST_MISSING = "reasoning_lost_missing"
    REASONING_LOST_EDITED = "reasoning_lost_edited"
    REASONING_LOST_UNRECOGNISED = "reasoning_lost_unrecognised"
    REASONING_LOST_OTHER_ENGINE = "reasoning_lost_other_engine"
    REASONING_LOST_HISTORY_CHANGED = "reasoning_lost_history_changed"


class Sentence(msgspec.Struct, frozen=True):
    """A reason with its details, to be rendered in the reader's language."""

    reason: Reason | Word
    details: dict[str, str | int | float | Sentence] = msgspec.field(default_factory=dict)
    """By placeholder. One may itself be a sentence: `part_refused` names a part, and why."""


def say(reason: Reason | Word, /, **details: str | int | float | Sentence) -> Sentence:
    """Shorthand for a `Sentence`: `say(Reason.TOOL_RESULT_MISSING, index=3, ids="c1")`."""
    return Sentence(reason, details)


class GatewayError(Exception):
    """A failure that a caller is told about: `GatewayError(Reason.FILE_TOO_LARGE, param="content", limit=MOST)`."""

    def __init__(
        self,
        reason: Reason,
        /,
        *,
        code: Code | None = None,
        param: str | None = None,
        retry_after: int | None = None,
        retryable: bool = False,
        **details: str | int | float | Sentence,
    ) -> None:
        super().__init__(reason.value)
        self.reason = reason
        self.code = code or reason.code
        """The reason's own, unless it only frames another one (`part_refused`)."""
        self.param = param
        """The field of the request that is wrong, as a path (`messages[2].content`)."""
        self.retry_after = retry_after
        """Whole seconds >= 1 until the next try can succeed."""
        self.retryable = retryable
        """The same call may succeed a moment later (set by engines; the retry loop reads it)."""
        self.details = details

    @property
    def message(self) -> Sentence:
        """What to tell."""
        return Sentence(self.reason, self.details)

    def at(self, param: str, *, code: Code | None = None) -> GatewayError:
        """The same failure, of a field that the caller knows."""
        error = GatewayError(
            self.reason, code=code or self.code, param=param, retry_after=self.retry_after, retryable=self.retryable
        )
        error.details = self.details
        return error

    def __repr__(self) -> str:
        return f"GatewayError({self.code.value}, {self.reason.value!r}, param={self.param!r})"
