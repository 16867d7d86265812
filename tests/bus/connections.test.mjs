// A thousand connections at once, twenty of them of the SDK of Azure.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, it } from "node:test";
import rhea from "rhea";
import { Baton, until } from "./baton.mjs";

const plain = 980, azure = 20, total = plain + azure;
const atOnce = 50;  // who opens them all at once only tests the backlog of listen()
// MiB of VmRSS that they and their messages may add to a server that has 28. Measured: 34 (release build), and 35 when it is done a second time.
const bound = 60;

let baton;
before(async () => { baton = await Baton.start(); });
after(() => baton.stop());

const rss = () => Number(readFileSync(`/proc/${baton.process.pid}/status`, "utf8").match(/^VmRSS:\s+(\d+) kB/m)[1]) / 1024;
// Whose memory says nothing.
const isSanitized = () => /lib[at]san/.test(readFileSync(`/proc/${baton.process.pid}/maps`, "utf8"));
const connections = async () => Number((await (await fetch(`${baton.url}/metrics`)).text()).match(/^baton_bus_connections (\d+)/m)[1]);
const next = (on, event) => new Promise((resolve, reject) => {
  on.once(event, resolve);
  for (const failed of ["connection_error", "sender_error", "receiver_error", "rejected", "disconnected"]) on.once(failed, (context) => reject(new Error(`${failed}: ${context.error}`)));
});

// Both answer what the one connection does; `got` takes the message that it receives.
async function openPlain(id, got) {
  const [host, port] = baton.amqp.split(":");
  const connection = rhea.create_container().connect({ host, port, username: "any", reconnect: false });
  const sender = connection.open_sender("many");
  await next(connection, "sendable");
  return {
    send: () => {
      const accepted = next(connection, "accepted");
      sender.send({ message_id: id, body: id });
      return accepted;
    },
    receive: () => {
      const received = next(connection, "message");
      connection.open_receiver({ source: "many", credit_window: 0 }).add_credit(1);
      return received.then(({ message }) => { got.push(message.body); });
    },
    close: () => connection.close(),
  };
}

async function openAzure(id, got) {
  const client = baton.client(), sender = client.createSender("many"), receiver = client.createReceiver("many");
  await sender.createMessageBatch();  // which opens it
  return {
    send: () => sender.sendMessages({ messageId: id, body: id }),
    receive: async () => {
      const [message] = await receiver.receiveMessages(1, { maxWaitTimeInMs: 30_000 });
      got.push(message.body);
      await receiver.completeMessage(message);
    },
    close: () => client.close(),
  };
}

// Answers the server's memory with all of them.
async function oneRound() {
  const got = [], open = [];
  while (open.length < total) {
    const some = Array.from({ length: Math.min(atOnce, total - open.length) }, (_, i) => open.length + i);
    open.push(...await Promise.all(some.map((i) => (i % (total / azure) === 0 ? openAzure : openPlain)(`m-${i}`, got))));
  }
  assert.equal(await connections(), total);
  await Promise.all(open.map(({ send }) => send()));
  await Promise.all(open.map(({ receive }) => receive()));
  assert.deepEqual(got.toSorted(), Array.from({ length: total }, (_, i) => `m-${i}`).sort());
  const most = rss();
  await until("an empty queue", async () => (await baton.http("GET", "/bus/entities/many")).counts.active === 0);
  for (const { close } of open) await close();
  await until("the end of all connections", async () => await connections() === 0);
  return most;
}

it("are open at once, each sends and receives a message, and all are gone afterwards", { timeout: 240_000 }, async () => {
  await baton.make("queue", "many");
  const before = rss();
  for (const round of ["first", "second"]) {
    const more = await oneRound() - before;
    if (!isSanitized()) assert.ok(more < bound, `the ${round} time: ${more.toFixed(1)} MiB more than ${before.toFixed(1)}`);
  }
});
