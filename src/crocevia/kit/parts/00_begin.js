/* Crocevia's chat kit: one file, no libraries. docs/chat-kit.md says how to use it.
 *
 *   PepperChat.attacca(element, {indirizzo: "/my-server/chat", progetto: "default"})
 *
 * Made of the files of src/crocevia/kit/parts, one after the other: texts · event stream · reducer · sentences ·
 * Markdown · DOM · one turn on the wire · the widget. Everything before «DOM» is pure and is tested without a browser.
 * No text ever becomes markup: nodes are built one by one, from a fixed set of tags, so that nothing a model, a tool,
 * a file or a server says can run.
 */
(function () {
"use strict";

