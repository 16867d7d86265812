// The same programs of rhea for every broker: sends of durable messages until all are accepted, and a consumer until all are settled.
import { closed, connectTo, opened, outcomeOf, rhea, within } from "./machine.mjs";

const patience = 600;  // seconds

async function openAll(side, count) {
  return Promise.all(Array.from({ length: count }, () => opened(connectTo(side))));
}

const share = (count, parts, index) => Math.floor(count * (index + 1) / parts) - Math.floor(count * index / parts);

// Sends `count` messages over a connection, with at most `window` that were not answered yet.
function sendOver(connection, address, first, count, { size, window }) {
  const body = rhea.message.data_section(Buffer.alloc(size, "x"));
  const sender = connection.open_sender({ target: { address, durable: 2 }, snd_settle_mode: 0 });
  return new Promise((resolve, reject) => {
    let sent = 0, accepted = 0;
    const pump = () => {
      while (sent < count && sent - accepted < window && sender.sendable()) sender.send({ durable: true, message_id: `m-${first + sent++}`, body });
    };
    sender.on("sendable", pump);
    sender.on("accepted", () => {
      if (++accepted === count) resolve();
      else pump();
    });
    for (const event of ["rejected", "released", "modified"])
      sender.on(event, ({ delivery }) => reject(new Error(`${event}: ${delivery.remote_state?.error?.description ?? ""}`)));
    if (count === 0) resolve();
  });
}

// Seconds from the first send to the last acceptance.
export async function sendAll(side, queue, count, { connections = 1, size = 200, window = 500, first = 0 } = {}) {
  const open = await openAll(side, connections);
  const began = performance.now();
  let from = first;
  const sending = open.map((connection, index) => {
    const part = share(count, connections, index);
    from += part;
    return sendOver(connection, side.address(queue), from - part, part, { size, window: Math.ceil(window / connections) });
  });
  await within(patience, () => `${count} sends to ${queue}`, Promise.race([Promise.all(sending), ...open.map((each) => each.failure)]));
  const seconds = (performance.now() - began) / 1000;
  await Promise.all(open.map(closed));
  return seconds;
}

// Receives and accepts `count` messages. `settle` is "first" (the acceptance is settled at once, as plain clients of AMQP do it) or "second"
// (the broker answers each, as the SDKs of Service Bus want it; "settled" is then counted by answers). Seconds from the first credit until all
// is settled and the broker has read it: it has answered the close of the connections. A message that comes twice is an error. `exact`: more messages
// wait than are wanted, and no others may be taken.
export async function receiveAll(side, queue, count, { connections = 1, credit = 500, settle = "first", exact = false } = {}) {
  const open = await openAll(side, connections);
  const seen = new Set();
  let settled = 0, toAsk = count;
  const window = Math.ceil(credit / connections);
  const ask = (receiver) => {
    const more = Math.min(window - receiver.credit, toAsk);
    if (more === 0 || (receiver.credit > window / 2 && toAsk > more)) return;
    toAsk -= more;
    receiver.add_credit(more);
  };
  const began = performance.now();
  const done = new Promise((resolve, reject) => {
    const countOne = () => { if (++settled === count) resolve(); };
    for (const connection of open) {
      const receiver = connection.open_receiver({
        source: { address: side.address(queue), durable: 2 }, credit_window: exact ? 0 : window, rcv_settle_mode: settle === "second" ? 1 : 0,
      });
      if (exact) receiver.once("receiver_open", () => ask(receiver));
      receiver.on("message", ({ message }) => {
        if (exact) ask(receiver);
        if (seen.has(message.message_id)) reject(new Error(`${message.message_id} came twice`));
        seen.add(message.message_id);
        if (settle === "first") countOne();
      });
      receiver.on("settled", ({ delivery }) => {
        if (settle !== "second") return;
        if (outcomeOf(delivery) !== "accepted") reject(new Error(`a completion was answered ${outcomeOf(delivery)}`));
        delivery.update(true);
        countOne();
      });
    }
  });
  await within(patience, () => `${settled} of ${count} messages of ${queue}`, Promise.race([done, ...open.map((each) => each.failure)]));
  await Promise.all(open.map(closed));
  return (performance.now() - began) / 1000;
}
