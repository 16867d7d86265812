#!/usr/bin/env node
// Records what real clients say, as the seeds of amqp_fuzz: tests/fuzz/amqp/NAME has the first byte that amqp_fuzz wants (1: the open server, not greeted), and then
// all that went over one connection to the server. The names of queues and topics are those that the fuzzer knows.
//   BATON_BINARY=build/release/baton tests/fuzz/record_amqp.mjs     with the packages of tests/bus; scripts/fuzz needs only what it made
import { writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { createRequire } from "node:module";
import { join } from "node:path";
import { Baton } from "../bus/baton.mjs";

const require = createRequire(new URL("../bus/package.json", import.meta.url));
const rhea = require("rhea"), { ServiceBusClient } = require("@azure/service-bus");

const open = 1;
const next = (on, event) => new Promise((resolve) => on.once(event, resolve));

// A server that writes down what one client says to baton.
async function record(baton, name, speak) {
  const said = [], [host, port] = baton.amqp.split(":");
  const proxy = createServer((from) => {
    const to = connect({ host, port, noDelay: true });
    from.on("data", (bytes) => said.push(bytes));
    from.pipe(to).pipe(from);
    for (const socket of [from, to]) socket.on("error", () => {});
  });
  await new Promise((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  await speak(proxy.address().port);
  await new Promise((resolve) => proxy.close(resolve));
  const text = Buffer.concat([Buffer.from([open]), ...said]).toString("latin1");
  const bytes = Buffer.from(text.replace(/\(x64-[^)]*\)/g, ({ length }) => "x".repeat(length)), "latin1");  // on whichever machine
  writeFileSync(join(import.meta.dirname, "amqp", name), bytes);
  console.log(`${name}: ${bytes.length} bytes`);
}

const withSdk = (speak) => async (port) => {
  const client = new ServiceBusClient(`Endpoint=sb://127.0.0.1:${port};SharedAccessKeyName=k;SharedAccessKey=a2V5;UseDevelopmentEmulator=true`);
  await speak(client);
  await client.close();
};
const withRhea = (options, speak) => async (port) => {
  const connection = rhea.create_container({ id: "x" }).connect({ host: "127.0.0.1", port, reconnect: false, ...options });
  await speak(connection);
  const gone = next(connection, "connection_close");
  connection.close();
  await gone;
};
const one = async (receiver) => (await receiver.receiveMessages(1, { maxWaitTimeInMs: 5000 }))[0];
const later = () => new Date(Date.now() + 3_600_000);

const baton = await Baton.start();
await baton.make("queue", "q");
await baton.make("topic", "t");
await baton.make("subscription", "t/Subscriptions/s");
await baton.http("POST", "/workflows", "workflow_id: w\nnodes:\n  start: {type: start, next: [n]}\n  n: {type: task, handler: H, queue: tasks, next: [end]}\n  end: {type: end}\n", "application/yaml");

// put-token, and a message; a batch.
await record(baton, "send", withSdk(async (client) => {
  const sender = client.createSender("q");
  await sender.sendMessages({ messageId: "m", body: { a: 1 }, contentType: "application/json", applicationProperties: { k: 1 } });
  await sender.sendMessages([{ body: "b" }, { body: Buffer.from("c"), timeToLive: 60_000 }]);
}));
await record(baton, "peek", withSdk((client) => client.createReceiver("q").peekMessages(2)));
await record(baton, "schedule", withSdk(async (client) => {
  const sender = client.createSender("q"), numbers = await sender.scheduleMessages([{ body: "later" }], later());
  await sender.cancelScheduledMessages(numbers);
}));
await record(baton, "settle", withSdk(async (client) => {
  const receiver = client.createReceiver("q", { maxAutoLockRenewalDurationInMs: 0 });
  await receiver.abandonMessage(await one(receiver), { tried: true });
  const first = await one(receiver);
  await receiver.renewMessageLock(first);
  await receiver.completeMessage(first);
  await receiver.deadLetterMessage(await one(receiver), { deadLetterReason: "r", deadLetterErrorDescription: "d" });
}));
// What was deferred is received and settled over $management: update-disposition.
await record(baton, "deferred", withSdk(async (client) => {
  const receiver = client.createReceiver("q", { maxAutoLockRenewalDurationInMs: 0 }), message = await one(receiver);
  await receiver.deferMessage(message);
  const [again] = await receiver.receiveDeferredMessages(message.sequenceNumber);
  await receiver.completeMessage(again);
}));
await record(baton, "rules", withSdk(async (client) => {
  const rules = client.createRuleManager("t", "s");
  await rules.createRule("sql", { sqlExpression: "a > 1" }, { sqlExpression: "SET b = 2" });
  await rules.createRule("fields", { subject: "s", applicationProperties: { k: "v" } });
  for await (const rule of rules.listRules()) void rule;
  await rules.deleteRule("sql");
}));
await baton.http("POST", "/jobs", { workflow_id: "w", input_data: {} });
await record(baton, "task", withSdk(async (client) => {
  const receiver = client.createReceiver("tasks", { maxAutoLockRenewalDurationInMs: 0 }), task = await one(receiver);
  await receiver.renewMessageLock(task);
  await receiver.completeMessage(task);
  await client.createSender("worker-results").sendMessages({ body: { task_id: task.body.task_id, status: "completed", output: {} } });
}));

const send = async (connection) => {
  const sender = connection.open_sender("q");
  await next(sender, "sendable");
  sender.send({ message_id: "m", body: "x" });
  await next(sender, "accepted");
};
await record(baton, "plain", withRhea({ username: "user", password: "a token" }, send));
await record(baton, "receive", withRhea({ username: "user" }, async (connection) => {
  const receiver = connection.open_receiver({ source: "q", rcv_settle_mode: 1, autoaccept: false, credit_window: 2 });
  const { delivery } = await next(receiver, "message");
  delivery.modified({ delivery_failed: true, undeliverable_here: true });
  await next(receiver, "settled");
  receiver.drain_credit();
  await next(receiver, "receiver_drained");
}));
// As the SDK for .NET logs in.
await record(baton, "mssbcbs", withRhea({ sasl_mechanisms: { MSSBCBS: () => ({ start: (answer) => answer(undefined, "") }) } }, send));
await baton.stop();
