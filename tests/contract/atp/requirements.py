"""What Envai's contract asks of a server, by our numbers. Sections are those of the specification."""

from __future__ import annotations

from tests.contract.requirements import Requirement as R

from .requirements_turns import TURNS

CONTROL: tuple[R, ...] = (
    R("A-OPS-1", "Every operation of the inventory is at its address.", "10"),
    R("A-OPS-2", "Answers are {data} wrapped, except models, pages and the key list.", "7"),
    R("A-AUTH-1", "A request without a valid bearer is 401 unauthenticated, the same for every reason.", "6"),
    R(
        "A-AUTH-3",
        "A dashboard's session cookie opens the control plane too.",
        "6",
        divergence="Only keys open it: no operation of the contract makes such a session, the panel has one of its "
        "own, and a cookie that browsers send by themselves would let other sites act as their user.",
    ),
    R("A-AUTH-2", "Health and the key list are public.", "10.9"),
    R("A-ID-1", "Identifiers are lower-case ULIDs with the prefix of their kind.", "5"),
    R("A-ERR-1", "Every error is {error: {type, code?, message, details?}}; details name fields.", "8"),
    R("A-ERR-2", "429 is closed to type and message, and says when in Retry-After.", "8"),
    R("A-ERR-3", "Every answer carries a request id.", "8"),
    R(
        "A-ERR-4",
        "An object of somebody else is answered exactly as one that does not exist.",
        "19",
        divergence="The contract also allows 403; 404 for both tells a stranger nothing.",
    ),
    R("A-NEG-1", "The version header selects the view; bad or repeated is 400, unspoken is 426.", "23"),
    R("A-NEG-2", "Every answer of a negotiated operation acknowledges the version exactly once, errors too.", "23"),
    R("A-BODY-1", "A body that is too large, too deep, not JSON or not an object is refused and changes nothing.", "8"),
    R("A-WSP-1", "Workspaces are created, listed, read and changed; metadata is an object.", "10.2"),
    R("A-TWL-1", "A client tool has a name of its own, a sound schema of an object and at most 600 seconds.", "10.2"),
    R("A-CHT-1", "A chat has one of the caller's teams and no title yet.", "10.3"),
    R("A-CHT-2", "A list of chats is bounded, newest first, and goes on where it says.", "10.3"),
    R("A-CMP-1", "Completions are filtered and paged, newest first, with links and meta.", "10.3"),
    R("A-CMP-2", "Contract 3 shows unknown costs as null, usage_cost, billing and the terminal snapshot.", "25"),
    R("A-CMP-3", "Version 2 shows numbers only; a page that it has no words for is 426 as a whole.", "25"),
    R("A-CMP-4", "A turn ends once; reconciliation raises the revision and leaves the snapshot.", "25"),
    R("A-AGT-1", "An agent has a name of its own, a mode, a model that can be chosen, objects as tools.", "10.5"),
    R("A-AGT-2", "An agent that leads a team stays; one that is a member leaves its teams.", "10.5"),
    R("A-AGT-3", "A tool runs only where its rule says allow; whatever is no rule denies, and is refused.", "10.5"),
    R("A-TEAM-1", "A team keeps the order of its members; its orchestrator is a primary agent of the caller.", "10.6"),
    R("A-TEAM-2", "A team with chats cannot be deleted.", "10.6"),
    R("A-MOD-1", "The catalogue lists models and the caller's teams, deprecation and the defaults by role.", "10.7"),
    R("A-KEY-1", "A token is shown once; without expires_at it holds 30 days, with never for ever.", "6"),
    R("A-KEY-2", "A revoked or expired key opens nothing from that moment, and its open streams end.", "6"),
    R("A-JWKS-1", "The key list has every key in full; a new one is published before it signs.", "6"),
    R("A-FILE-1", "Files and folders of a workspace are created, read, changed and deleted as described.", "10.4"),
    R("A-FILE-2", "Paths and texts outside the contract's grammar and limits are refused at every address.", "10.4"),
    R("A-FILE-3", "A download is the file's bytes, its name and type, to be kept and not shown.", "10.4"),
    R("A-FILE-4", "Markdown and plain text become a PDF; nothing in them is executed or loaded.", "10.4"),
    R("A-ATT-1", "A file of a chat is kept as it came, listed, read back and deleted.", "23"),
    R("A-ATT-2", "An upload is kept once per Idempotency-Key; another file under the same key is a conflict.", "23"),
    R("A-ATT-3", "What is too large, not what it says, or no such form is refused and leaves nothing.", "23"),
    R(
        "A-ATT-4",
        "The model is given what a message carries; what it cannot read is refused before a turn opens.",
        "23",
    ),
    R("A-IMG-1", "A picture is ordered, made afterwards, told of by a signed webhook, and never made twice.", "10.8"),
    R("A-IMG-2", "A signed address opens one picture until it expires; tampered is 403, expired is 404.", "10.8"),
    R("A-IMG-3", "Inputs, masks, uploads and settings keep the contract's rules and budgets.", "10.8"),
    R("A-IMG-4", "No address that a caller gives leads inside.", "10.8"),
    R("A-IMG-5", "Nobody sees or uses another user's pictures.", "19"),
    R("A-HOOK-1", "A provider's webhook is believed only with its signature over the received bytes.", "10.8"),
    R(
        "A-WIKI-1",
        "Wiki operations answer 404 in the contract's error form.",
        "25",
        divergence="This server has no wiki yet.",
    ),
)

REQUIREMENTS: tuple[R, ...] = (*CONTROL, *TURNS)
