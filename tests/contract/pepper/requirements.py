"""Quello che la specifica «Pepper — API Agente (v1)» chiede, riga per riga, con parole nostre.

Le sezioni sono i titoli della specifica. Soldi e limiti, API classica e nginx stanno nei file accanto.
"""

from __future__ import annotations

from tests.contract.requirements import Requirement as R

_SILENT = "La specifica non lo dice: "

REQUIREMENTS: tuple[R, ...] = (
    # Principio e attivazione
    R("P-BRAIN-1", "Pepper decide quale attrezzo chiamare e non esegue niente.", "Pepper — API Agente (v1)"),
    R("P-ON-1", "Un progetto in modalità standard riceve 403 agente_non_abilitato.", "Come si attiva"),
    # Endpoint
    R("P-END-1", "POST /agent e POST /agent.php sono lo stesso endpoint.", "Endpoint"),
    R("P-END-2", "Il progetto sta in X-Pepper-Project o, come ripiego, nel campo `project`.", "Endpoint"),
    # Richiesta
    R("P-REQ-1", "`messages` è obbligatorio e non vuoto.", "Richiesta"),
    R("P-REQ-2", "Senza `stream` la risposta è un JSON unico.", "Richiesta"),
    R("P-REQ-3", "`max_tokens` vale 4096 di serie e sta fra 256 e 32000.", "Richiesta"),
    R("P-REQ-4", "`session_id` finisce nel log e non cambia altro.", "Richiesta"),
    R(
        "P-REQ-5",
        "Di serie `system` prende il posto delle istruzioni del modello; se manca valgono quelle.",
        "Modello, limiti, comportamento",
    ),
    R(
        "P-REQ-6",
        "Con «voce nelle app» si sommano: prima le istruzioni del modello, poi `system`.",
        "Modello, limiti, comportamento",
    ),
    R("P-REQ-7", "`tools` può cambiare a ogni richiesta.", "Richiesta"),
    # Messaggi
    R("P-MSG-1", "I ruoli sono user, assistant e tool; arrivano al modello in ordine e intatti.", "Formato `messages`"),
    R("P-MSG-2", "`arguments` di una chiamata è un oggetto JSON.", "Formato `messages`"),
    R("P-MSG-3", "Il `content` di un messaggio tool è una stringa.", "Formato `messages`"),
    R(
        "P-MSG-4",
        "Ogni chiamata ha esattamente un risultato prima del messaggio dopo; se no 400 con messaggio e id.",
        "Tre regole da non sbagliare",
        divergence="La specifica lo lascia rifiutare al provider: noi lo diciamo prima, senza spendere.",
    ),
    R("P-MSG-5", "Un messaggio assistant porta testo e chiamate insieme, e i `blocchi`.", "Formato `messages`"),
    R("P-MSG-6", "`content` dell'utente può essere una lista di blocchi.", "Documenti (PDF)"),
    # Attrezzi
    R("P-TOOL-1", "`parameters` è uno schema oggetto, anche senza proprietà.", "Formato `tools`"),
    R(
        "P-TOOL-2",
        "Due attrezzi non possono avere lo stesso nome.",
        "Formato `tools`",
        divergence=_SILENT + "i provider lo rifiutano, noi lo diciamo prima.",
    ),
    R("P-TOOL-3", "`tool_choice` non fa parte della v1 ed è ignorato.", "Cosa non c'è nella v1"),
    R(
        "P-TOOL-4",
        "Un attrezzo può avere qualunque nome fino a 256 caratteri: il provider ne riceve uno che accetta.",
        "Formato `tools`",
        divergence=_SILENT + "i provider accettano solo nomi semplici e corti.",
    ),
    # Risposta
    R("P-STOP-1", "`stop_reason` è end_turn o tool_use.", "Risposta"),
    R(
        "P-STOP-2",
        "Una risposta tagliata da max_tokens è end_turn con `troncato`: true, senza mezze chiamate.",
        "Risposta",
        divergence="`troncato` è nostro, in più; con una chiamata intera prima del taglio è tool_use.",
    ),
    R("P-SSE-1", "Con `stream` la risposta è text/event-stream con stato 200.", "Streaming"),
    R("P-SSE-2", "I `delta` concatenati sono esattamente il testo.", "Streaming"),
    R("P-SSE-3", "`tool_call` esce una volta per chiamata, completa, con `{}` che resta `{}`.", "Streaming"),
    R("P-SSE-4", "`done` chiude con stop_reason, usage, versione, novita e blocchi.", "Streaming"),
    R("P-SSE-5", "`error` è {message, code} e poi lo stream si chiude.", "Streaming"),
    R("P-SSE-6", "Ogni 15 secondi di silenzio esce un commento.", "Streaming"),
    R("P-SSE-7", "Ai proxy si chiede di non trattenere.", "Configurazione nginx"),
    R("P-SSE-8", "Gli id delle chiamate escono come li ha dati il motore.", "Tre regole da non sbagliare"),
    R("P-JSON-1", "`content` è null senza testo e `tool_calls` è [] senza chiamate.", "Non-streaming"),
    R("P-JSON-2", "Il JSON porta gli stessi usage, versione, novita e blocchi del `done`.", "Non-streaming"),
    # Usage
    R(
        "P-USE-1",
        "`usage` ha le quattro cifre di questa sola chiamata.",
        "Non-streaming",
        divergence="Una cifra che il provider non ha mai dato è null, non zero.",
    ),
    R(
        "P-USE-2",
        "Le due cifre della cache dicono quanto è stato letto e quanto scritto.",
        "Non-streaming",
        divergence="`input_tokens` è tutto il prompt e le cifre della cache ne sono parte, con ogni motore: solo così "
        "la regola per sommare i giri è vera.",
    ),
    R("P-USE-3", "Pepper mette in cache da sé attrezzi, istruzioni e cronologia già mandata.", "Non-streaming"),
    R("P-USE-4", "Da un giro all'altro quella parte resta identica.", "Non-streaming"),
    R(
        "P-USE-5",
        "L'uscita si somma; l'ingresso dell'ultimo giro comprende i precedenti.",
        "Come sommare `usage` senza contare due volte",
    ),
    R("P-USE-6", "Le cifre sono le stesse in streaming e no, contate una volta.", "Non-streaming"),
    # Il giro
    R("P-LOOP-1", "Il giro degli attrezzi si chiude rimandando la cronologia aggiornata.", "Il loop di tool-use"),
    R("P-LOOP-2", "Pepper non mette un tetto ai giri.", "Il loop di tool-use"),
    R("P-RULE-1", "Il testo dei `delta` è il `content` da rimandare, tale e quale.", "Tre regole da non sbagliare"),
    R("P-RULE-2", "Testo e chiamate tornano in un solo messaggio assistant.", "Tre regole da non sbagliare"),
    # Errori
    R("P-ERR-400", "400 richiesta_non_valida per JSON, forma e contenuto sbagliati.", "Errori"),
    R("P-ERR-401", "401 non_autorizzato per chiave assente, errata o di un altro progetto.", "Errori"),
    R("P-ERR-405", "405 metodo_non_valido se non è una POST.", "Errori"),
    R("P-ERR-413", "413 richiesta_troppo_grande oltre 32 MB.", "Errori"),
    R("P-ERR-422", "422 richiesta_rifiutata quando il modello si rifiuta.", "Errori"),
    R("P-ERR-429", "429 troppe_richieste oltre il limite orario, con Retry-After.", "Errori"),
    R("P-ERR-502", "502 errore_ai quando il provider sbaglia.", "Errori"),
    R("P-ERR-503", "503 servizio_non_disponibile quando manca database o configurazione.", "Errori"),
    R("P-ERR-BODY", "Un errore è {error: {code, message}} con una frase in italiano.", "Errori"),
    R("P-ERR-MID", "A stream aperto l'errore è un evento con lo stesso codice della tabella.", "Errori"),
    R(
        "P-ORD-1",
        "I rifiuti escono in ordine: 405, chiave assente, troppo grande, JSON, chiave, modalità.",
        "Errori",
        divergence=_SILENT + "il nostro ordine non dice a un estraneo più del dovuto.",
    ),
    # Modello e comportamento
    R("P-MOD-1", "Il contratto è lo stesso con ogni motore: l'adattatore traduce.", "Modello, limiti, comportamento"),
    R("P-MOD-2", "Il ragionamento lo decide il modello, non l'app.", "Modello, limiti, comportamento"),
    R("P-MOD-3", "La voce non cambia finché un progetto usa il modello.", "Modello, limiti, comportamento"),
    R(
        "P-TIME-1",
        "Gli unici limiti di tempo sono 600 secondi verso il provider e 900 in tutto.",
        "Modello, limiti, comportamento",
    ),
    R("P-CTX-1", "La cronologia arriva intera: il contesto è affare di chi chiama.", "Modello, limiti, comportamento"),
    R("P-SIZE-1", "Il risultato di un attrezzo non ha un limite suo.", "Modello, limiti, comportamento"),
    R("P-LOG-1", "Ogni chiamata lascia un record con encode `agente`.", "Modello, limiti, comportamento"),
    # Ragionamento e blocchi
    R(
        "P-BLK-1",
        "I `blocchi` sono i pezzi del motore, intatti; testo e attrezzi nostri dove il motore non ne ha.",
        "Il ragionamento e i `blocchi`",
    ),
    R(
        "P-BLK-2",
        "Al giro dopo i pezzi del ragionamento tornano identici e in ordine.",
        "Il ragionamento e i `blocchi`",
    ),
    R(
        "P-BLK-3",
        "Quando ci sono, al provider vanno quelli: niente tolto, riordinato o ricostruito.",
        "Il ragionamento e i `blocchi`",
        divergence="Un testo vuoto che il provider ha dato e rifiuterebbe non gli torna.",
    ),
    R(
        "P-BLK-4",
        "Cronologia accorciata o riscritta, system o tools cambiati: il ragionamento si scarta e il log lo dice.",
        "Il ragionamento e i `blocchi`",
    ),
    R(
        "P-BLK-5",
        "Blocchi modificati, sconosciuti o di un altro motore si ricostruiscono; mai un 400 del provider.",
        "Il ragionamento e i `blocchi`",
        divergence=_SILENT + "a decidere sono i `tool_calls`, ai quali appartengono i risultati.",
    ),
    R("P-RES-1", "Un giro aperto arrivato senza `blocchi` lo chiude la riserva.", "Il ragionamento e i `blocchi`"),
    R(
        "P-RES-2",
        "Senza riserva va avanti lo stesso motore senza ragionare; se non può, 400 che dice cosa fare.",
        "Il ragionamento e i `blocchi`",
        divergence=_SILENT + "dà per scontata la riserva.",
    ),
    R("P-RES-3", "Il progetto risulta «app senza blocchi» finché l'app non li manda.", "Il ragionamento e i `blocchi`"),
    R(
        "P-RES-4",
        "Con un modello che non ragiona i `blocchi` arrivano lo stesso e non servono.",
        "Il ragionamento e i `blocchi`",
    ),
    R("P-RSN-1", "Un modello che ragiona ha almeno 16000 token.", "Il ragionamento e i `blocchi`"),
    # Documenti
    R("P-DOC-1", "Un messaggio può portare documenti e testo, nell'ordine dato.", "Documenti (PDF)"),
    R(
        "P-DOC-2",
        "5 documenti, 10 MB l'uno, 600 pagine, 100 sul modello economico.",
        "Documenti (PDF)",
        divergence="Documenti e foto di tutta la richiesta contano insieme verso i 5.",
    ),
    R(
        "P-DOC-3",
        "Ogni tipo vuole il suo permesso: 403 documenti_non_abilitati, immagini_non_abilitate.",
        "Documenti (PDF)",
    ),
    R(
        "P-DOC-4",
        "Le foto viaggiano con `tipo_file`: JPEG, PNG, GIF, WebP, 5 MB.",
        "Documenti (PDF)",
        divergence="Che cosa è un file lo dicono i suoi byte, non l'etichetta.",
    ),
    R("P-DOC-5", "`url` al posto di `dati`: un indirizzo https raggiungibile.", "Documenti (PDF)"),
    R(
        "P-DOC-6",
        "Niente citazioni in modalità agente; i documenti vanno a Claude come sono.",
        "Documenti (PDF)",
        divergence="Anche gli altri motori: chi non legge PDF riceve il testo e le pagine come immagini.",
    ),
    R(
        "P-DOC-7",
        "Un documento rimandato a ogni giro si legge una volta.",
        "Documenti (PDF)",
        divergence=_SILENT + "serve alla cache e ai tempi.",
    ),
    R("P-DOC-8", "I blocchi sono testo o documento, nient'altro.", "Documenti (PDF)"),
    # Capacità e verifica
    R(
        "P-CAP-1",
        "`/capacita.php` dice voce_nelle_app, novita e che cosa sa fare il modello.",
        "Modello, limiti, comportamento",
    ),
    R(
        "P-VER-1",
        "POST /agent/verifica dice che ne sarebbe di una richiesta, senza farla.",
        "Il ragionamento e i `blocchi`",
        divergence="È nostro, in più.",
    ),
    # Kit, assenze, esempio
    R("P-KIT-1", "kit.php dà il nome del modello, la versione e i file con ETag, senza chiave.", "Il kit della chat"),
    R("P-NOT-1", "La memoria è del chiamante.", "Cosa non c'è nella v1"),
    R("P-NOT-2", "In modalità agente non c'è ricerca sul web.", "Cosa non c'è nella v1"),
    R("P-EX-1", "L'esempio della specifica funziona com'è.", "Esempio — un giro completo"),
)
