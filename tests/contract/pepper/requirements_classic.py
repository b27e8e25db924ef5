"""The classic API. What the specification leaves open of it is ours, written down in docs/pepper-api.md."""

from __future__ import annotations

from tests.contract.requirements import Requirement as R

_OURS = "The specification only mentions the classic API: the plainest contract consistent with it."

REQUIREMENTS: tuple[R, ...] = (
    R("P-CLS-1", "The caller sends progetto, encode and contenuto.", "Pepper — API Agente (v1)"),
    R(
        "P-CLS-2",
        "Instructions are the recipe's; the model's own voice is replaced or comes first, as for apps.",
        "Pepper — API Agente (v1)",
        divergence=_OURS,
    ),
    R("P-CLS-3", "A project in agent mode and one in standard mode both may call it.", "Come si attiva"),
    R(
        "P-CLS-4",
        "The answer is {risposta, conversazione, versione, usage}, without novita.",
        "Streaming",
        divergence=_OURS,
    ),
    R("P-CLS-5", "Errors have the form of the agent call; an unknown encode is 400.", "Errori", divergence=_OURS),
    R("P-CLS-6", "The key is the same; the project is named in the body, a header is the fallback.", "Endpoint"),
    R(
        "P-CLS-7",
        "Pepper keeps the memory: `conversazione` goes on where it stopped, per project.",
        "Pepper — API Agente (v1)",
    ),
    R(
        "P-CLS-8",
        "What is kept is text under the project's retention; without retention nothing is written.",
        "Pepper — API Agente (v1)",
        divergence=_OURS,
    ),
    R("P-CLS-9", "DELETE forgets a conversation.", "Pepper — API Agente (v1)", divergence=_OURS),
    R("P-CLS-10", "The record has the recipe's name as encode.", "Modello, limiti, comportamento"),
    R("P-CLS-11", "Documents and photos obey the same rules and permissions as in the agent call.", "Documenti (PDF)"),
    R(
        "P-CLS-12",
        "Citations come with documents: which, page and passage; found in the text where the engine is silent.",
        "Documenti (PDF)",
        divergence=_OURS,
    ),
    R("P-CLS-13", "Web search is the project's permission and never part of the agent call.", "Cosa non c'è nella v1"),
    R("P-CLS-14", "Limits, budget and their headers are those of the project.", "Errori"),
    R("P-CLS-15", "A caller that hangs up ends the call.", "Errori", divergence=_OURS),
)
