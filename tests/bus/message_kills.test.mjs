// The server is killed while messages flow through a queue: nothing that was accepted is lost, and locks that were given hold.
import assert from "node:assert/strict";
import { Baton, until } from "./baton.mjs";
import { after, before, it } from "./testing.mjs";

const kills = Number(process.env.KILLS ?? 4), count = 250 * kills;

let baton;
before(async () => { baton = await Baton.start(); });
after(() => baton.stop());
const restart = async () => {
  await baton.kill();
  await baton.start(...baton.options);
};
const one = async (receiver, wait = 5000) => (await receiver.receiveMessages(1, { maxWaitTimeInMs: wait }))[0];

it("keeps messages, their order and their locks over kill -9", async () => {
  await baton.make("queue", "locks", { lock_seconds: 30 });
  const client = baton.client();
  const receiver = client.createReceiver("locks");
  const sender = client.createSender("locks");
  await sender.sendMessages(Array.from({ length: 6 }, (_, i) => ({ body: i })));
  await sender.scheduleMessages({ body: "scheduled" }, new Date(Date.now() + 3000));
  const messages = await receiver.receiveMessages(4, { maxWaitTimeInMs: 5000 });
  await receiver.deferMessage(messages[3]);
  await restart();
  // Another client has the rest; what was received before is settled over $management, since its link is gone.
  const other = baton.client();
  const again = other.createReceiver("locks");
  const [next, last] = await again.receiveMessages(2, { maxWaitTimeInMs: 5000 });
  assert.deepEqual([next.body, last.body], [4, 5]);
  assert.equal((await again.receiveDeferredMessages(messages[3].sequenceNumber))[0].body, 3);
  const late = baton.client(undefined, 5).createReceiver("locks");
  await late.peekMessages(1);
  await late.renewMessageLock(messages[0]);
  await late.completeMessage(messages[0]);
  await late.abandonMessage(messages[1], { seen: true });
  await late.deadLetterMessage(messages[2], { deadLetterReason: "after the kill" });
  const second = await one(again);
  assert.equal(second.body, 1);
  assert.equal(second.applicationProperties.seen, true);
  assert.equal((await one(other.createReceiver("locks", { subQueueType: "deadLetter" }))).deadLetterReason, "after the kill");
  assert.equal((await one(again)).body, "scheduled");
});

it("loses nothing that was accepted", { timeout: 240_000 }, async () => {
  await baton.make("queue", "flow", { lock_seconds: 5, deliveries_max: 1000 });
  const client = baton.client(undefined, 50);
  const sender = client.createSender("flow");
  const seen = new Map(), done = new Set();
  const receiver = client.createReceiver("flow");
  const subscription = receiver.subscribe({
    processMessage: async (message) => {
      seen.set(message.body, (seen.get(message.body) ?? 0) + 1);
      await receiver.completeMessage(message);
      done.add(message.body);
    },
    processError: async () => {},
  }, { maxConcurrentCalls: 20, autoCompleteMessages: false });
  const sending = (async () => {
    for (let i = 0; i < count; i += 10) {
      const batch = Array.from({ length: 10 }, (_, k) => ({ body: i + k }));
      for (;;) {
        const failed = await sender.sendMessages(batch).then(() => false, () => true);
        if (!failed) break;
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    }
  })();
  for (let i = 0; i < kills; i++) {
    await new Promise((resolve) => setTimeout(resolve, 700 + 200 * (i % 3)));
    await restart();
  }
  await sending;
  await until("all messages", () => done.size === count, 120);
  await subscription.close();
  assert.equal(seen.size, count);
  await until("an empty queue", async () => (await baton.http("GET", "/bus/entities/flow")).counts.active === 0, 30);
});
