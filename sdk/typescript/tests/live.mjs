// A program whose server a test kills: JSON lines of what it sees on standard output.
//
//     node live.mjs CHAT
import { EnvaiClient } from "../dist/esm/index.js";

const say = (value) => console.log(JSON.stringify(value));
const client = new EnvaiClient({ reconnect: { maxReconnects: 200, baseDelay: 50, maxDelay: 250 } });
const turn = client.chats.sendAndStream(process.argv[2], "slow please");
for await (const event of turn) say({ seq: event.seq, type: event.type });
say({ text: turn.text, reconnects: turn.reconnects });
