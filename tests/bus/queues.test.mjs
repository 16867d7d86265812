// Queues of one's own, with the real SDK of Azure Service Bus against the endpoint of the real binary.
import assert from "node:assert/strict";
import Long from "long";
import rhea from "rhea";
import { Baton, refusal, until } from "./baton.mjs";
import { after, before, describe, it } from "./testing.mjs";

const seconds = (count) => new Promise((resolve) => setTimeout(resolve, 1000 * count));
const one = async (receiver, wait = 5000) => (await receiver.receiveMessages(1, { maxWaitTimeInMs: wait }))[0];

let baton, client, made = 0;
before(async () => {
  baton = await Baton.start();
  client = baton.client();
});
after(() => baton.stop());

// A queue of its own for each test, with somebody at either end.
async function queue(settings) {
  const name = `queue-${++made}`;
  await baton.make("queue", name, settings);
  return { name, sender: client.createSender(name), receiver: client.createReceiver(name), dead: client.createReceiver(name, { subQueueType: "deadLetter" }) };
}

describe("a message", () => {
  it("arrives with all that its sender said", async () => {
    const { sender, receiver } = await queue();
    const sent = {
      body: { text: "ä", list: [1, 2.5, null, true] }, contentType: "application/json", correlationId: "c", subject: "s", to: "t", replyTo: "r",
      replyToSessionId: "rs", messageId: "m-1", partitionKey: "p", timeToLive: 600_000,
      applicationProperties: { text: "x", number: 7, real: 1.5, yes: true, nothing: null },
    };
    await sender.sendMessages(sent);
    const message = await one(receiver);
    for (const [key, value] of Object.entries(sent)) assert.deepEqual(message[key], value, key);
    assert.equal(message.deliveryCount, 0);
    assert.equal(message.sequenceNumber.toString(), "1");
    assert.ok(Math.abs(message.enqueuedTimeUtc - Date.now()) < 5000);
    assert.ok(message.lockedUntilUtc - Date.now() > 50_000);
    assert.equal(message.expiresAtUtc - message.enqueuedTimeUtc, 600_000);
    await receiver.completeMessage(message);
    assert.equal(await one(receiver, 300), undefined);
  });

  it("may be any bytes, a text, a number or nothing", async () => {
    const { sender, receiver } = await queue();
    const bodies = [Buffer.from([0, 255, 1]), "text", 42, null, Buffer.alloc(200_000, 7)];
    for (const body of bodies) await sender.sendMessages({ body });
    for (const body of bodies) {
      const message = await one(receiver);
      assert.deepEqual(message.body, body);
      assert.ok(message.messageId);
      await receiver.completeMessage(message);
    }
  });

  it("is one of a batch, in order", async () => {
    const { sender, receiver } = await queue();
    const batch = await sender.createMessageBatch();
    for (let i = 0; i < 100; i++) assert.ok(batch.tryAddMessage({ body: i }));
    await sender.sendMessages(batch);
    await sender.sendMessages(Array.from({ length: 50 }, (_, i) => ({ body: 100 + i })));
    const bodies = [];
    while (bodies.length < 150)
      for (const message of await receiver.receiveMessages(60, { maxWaitTimeInMs: 5000 })) {
        bodies.push(message.body);
        await receiver.completeMessage(message);
      }
    assert.deepEqual(bodies, Array.from({ length: 150 }, (_, i) => i));
  });

  it("goes to one of many receivers that wait", async () => {
    const { name, sender } = await queue();
    const seen = [], errors = [];
    const receivers = Array.from({ length: 5 }, () => client.createReceiver(name));
    for (const receiver of receivers)
      receiver.subscribe({
        processMessage: async ({ body }) => { seen.push(body); },
        processError: async ({ error }) => { errors.push(error); },
      }, { maxConcurrentCalls: 4 });
    await sender.sendMessages(Array.from({ length: 200 }, (_, i) => ({ body: i })));
    await until("all messages", () => seen.length >= 200);
    for (const receiver of receivers) await receiver.close();
    assert.equal(new Set(seen).size, 200);
    assert.equal(seen.length, 200);
    assert.deepEqual(errors, []);
  });

  it("that is received and deleted is gone", async () => {
    const { name, sender, receiver } = await queue();
    await sender.sendMessages([{ body: 1 }, { body: 2 }]);
    const deleting = client.createReceiver(name, { receiveMode: "receiveAndDelete" });
    assert.equal((await one(deleting)).body, 1);
    await deleting.close();
    assert.equal((await one(receiver)).body, 2);
  });

  it("is found whatever the case of its queue's name", async () => {
    await baton.make("queue", "Orders/EU");
    await client.createSender("orders/eu").sendMessages({ body: "x" });
    assert.equal((await one(client.createReceiver("ORDERS/EU"))).body, "x");
  });
});

describe("a lock", () => {
  it("that is abandoned gives the message to the next, with changed properties, and counts", async () => {
    const { sender, receiver } = await queue();
    await sender.sendMessages({ body: 1, applicationProperties: { kept: "k", changed: 1 } });
    await receiver.abandonMessage(await one(receiver), { changed: "two", added: 3.5 });
    assert.equal((await receiver.peekMessages(1))[0].deliveryCount, 1);
    const again = await one(receiver);
    assert.equal(again.deliveryCount, 1);
    assert.equal((await receiver.peekMessages(1, { fromSequenceNumber: Long.ONE }))[0].deliveryCount, 1);
    assert.deepEqual(again.applicationProperties, { kept: "k", changed: "two", added: 3.5 });
    await receiver.completeMessage(again);
  });

  it("is renewed, and then lasts longer", async () => {
    const { sender, name } = await queue({ lock_seconds: 5 });
    const receiver = client.createReceiver(name, { maxAutoLockRenewalDurationInMs: 0 });
    await sender.sendMessages({ body: 1 });
    const message = await one(receiver);
    for (let i = 0; i < 2; i++) {
      await seconds(3.5);
      assert.ok(await receiver.renewMessageLock(message) - Date.now() > 4000);
    }
    assert.equal(await one(client.createReceiver(name), 300), undefined);
    await receiver.completeMessage(message);
  });

  it("that expires is lost, and another gets the message", async () => {
    const { sender, name } = await queue({ lock_seconds: 5 });
    const silent = client.createReceiver(name, { maxAutoLockRenewalDurationInMs: 0 });
    await sender.sendMessages({ body: 1 });
    const first = await one(silent);
    const receiver = client.createReceiver(name);
    const second = await one(receiver, 10_000);
    assert.equal(second.deliveryCount, 1);
    assert.equal((await refusal(silent.completeMessage(first))).code, "MessageLockLost");
    assert.equal((await refusal(silent.renewMessageLock(first))).code, "MessageLockLost");
    await receiver.completeMessage(second);
  });

  it("is good though the receiver was closed", async () => {
    const { sender, receiver, name } = await queue();
    await sender.sendMessages([{ body: 1 }, { body: 2 }, { body: 3 }, { body: 4 }]);
    const messages = await receiver.receiveMessages(4, { maxWaitTimeInMs: 5000 });
    assert.equal(messages.length, 4);
    await receiver.close();
    const other = client.createReceiver(name);
    await refusal(receiver.completeMessage(messages[0]));  // the SDK itself refuses: it was closed
    assert.equal(await one(other, 300), undefined);
  });

  it("is the last one after as many deliveries as are allowed", async () => {
    const { sender, receiver, dead, name } = await queue({ deliveries_max: 3 });
    await sender.sendMessages({ body: 1, messageId: "m" });
    for (let i = 0; i < 3; i++) {
      const message = await one(receiver);
      assert.equal(message.deliveryCount, i);
      await receiver.abandonMessage(message);
    }
    assert.equal(await one(receiver, 300), undefined);
    const letter = await one(dead);
    assert.equal(letter.messageId, "m");
    assert.equal(letter.deadLetterReason, "MaxDeliveryCountExceeded");
    assert.equal(letter.deadLetterSource, name);
  });
});

describe("a dead letter", () => {
  it("has the reason of who made it one, and is received, abandoned and completed like others", async () => {
    const { sender, receiver, dead } = await queue();
    await sender.sendMessages({ body: { a: 1 }, applicationProperties: { kept: 1 } });
    await receiver.deadLetterMessage(await one(receiver), { deadLetterReason: "no such order", deadLetterErrorDescription: "17", more: "x" });
    const letter = await one(dead);
    assert.equal(letter.deadLetterReason, "no such order");
    assert.equal(letter.deadLetterErrorDescription, "17");
    assert.equal(letter.applicationProperties.kept, 1);
    assert.equal(letter.applicationProperties.more, "x");
    assert.deepEqual(letter.body, { a: 1 });
    await dead.abandonMessage(letter);
    const again = await one(dead);
    await dead.renewMessageLock(again);
    await dead.completeMessage(again);
    assert.equal(await one(dead, 300), undefined);
  });

  it("is what expires, if the queue says so", async () => {
    const { sender, receiver, dead } = await queue({ dead_letter_on_expiry: true });
    await sender.sendMessages([{ body: "short", timeToLive: 500 }, { body: "long" }]);
    await seconds(1);
    assert.equal((await one(receiver)).body, "long");
    const letter = await one(dead);
    assert.equal(letter.body, "short");
    assert.equal(letter.deadLetterReason, "TTLExpiredException");
  });
});

describe("a message that waits", () => {
  it("is gone when its time to live is over", async () => {
    const { sender, receiver, dead } = await queue({ time_to_live_seconds: 1 });
    await sender.sendMessages({ body: 1, timeToLive: 3_600_000 });
    await seconds(1.5);
    assert.equal(await one(receiver, 300), undefined);
    assert.equal(await one(dead, 300), undefined);
  });

  it("is peeked at without being received", async () => {
    const { sender, receiver, dead } = await queue();
    assert.deepEqual(await receiver.peekMessages(5), []);
    await sender.sendMessages([{ body: 1 }, { body: 2 }, { body: 3 }]);
    assert.deepEqual((await receiver.peekMessages(2)).map(({ body }) => body), [1, 2]);
    assert.deepEqual((await receiver.peekMessages(2)).map(({ body }) => body), [3]);
    const [first] = await receiver.peekMessages(1, { fromSequenceNumber: Long.ONE });
    const [second] = await receiver.peekMessages(1, { fromSequenceNumber: first.sequenceNumber.add(1) });
    assert.deepEqual([first.body, second.body], [1, 2]);
    assert.equal(second.state, "active");
    assert.deepEqual(await dead.peekMessages(1), []);
    assert.equal((await one(receiver)).body, 1);
  });

  it("is deferred, and received by its number", async () => {
    const { name, sender, receiver } = await queue();
    await sender.sendMessages([{ body: 1 }, { body: 2 }, { body: 3 }]);
    const numbers = [];
    for (let i = 0; i < 2; i++) {
      const message = await one(receiver);
      numbers.push(message.sequenceNumber);
      await receiver.deferMessage(message, { why: `later ${i}` });
    }
    assert.equal((await one(receiver)).body, 3);
    assert.equal((await receiver.peekMessages(1, { fromSequenceNumber: numbers[0] }))[0].state, "deferred");
    const [first] = await receiver.receiveDeferredMessages(numbers[0]);
    assert.equal(first.body, 1);
    assert.equal(first.applicationProperties.why, "later 0");
    await receiver.renewMessageLock(first);
    await receiver.completeMessage(first);
    const deleting = client.createReceiver(name, { receiveMode: "receiveAndDelete" });
    assert.equal((await deleting.receiveDeferredMessages(numbers[1]))[0].body, 2);
    assert.equal((await refusal(receiver.receiveDeferredMessages(numbers[1]))).code, "MessageNotFound");
  });

  it("that was deferred is dead-lettered, abandoned and deferred again", async () => {
    const { sender, receiver, dead } = await queue();
    await sender.sendMessages({ body: 1 });
    const message = await one(receiver);
    await receiver.deferMessage(message);
    const again = async () => (await receiver.receiveDeferredMessages(message.sequenceNumber))[0];
    await receiver.abandonMessage(await again());
    await receiver.deferMessage(await again());
    await receiver.deadLetterMessage(await again(), { deadLetterReason: "enough" });
    assert.equal((await one(dead)).deadLetterReason, "enough");
  });

  it("for its time comes then", async () => {
    const { sender, receiver } = await queue();
    const at = new Date(Date.now() + 2000);
    const numbers = await sender.scheduleMessages([{ body: "a", messageId: "a" }, { body: "b" }], at);
    assert.equal(numbers.length, 2);
    await sender.sendMessages({ body: "c", scheduledEnqueueTimeUtc: at });
    const [peeked] = await receiver.peekMessages(1);
    assert.equal(peeked.state, "scheduled");
    assert.equal(peeked.scheduledEnqueueTimeUtc.getTime(), at.getTime());
    assert.equal(await one(receiver, 300), undefined);
    await sender.cancelScheduledMessages(numbers[1]);
    const bodies = [];
    for (let i = 0; i < 2; i++) {
      const message = await one(receiver);
      assert.ok(Date.now() >= at);
      bodies.push(message.body);
      await receiver.completeMessage(message);
    }
    assert.deepEqual(bodies, ["a", "c"]);
    assert.equal(await one(receiver, 300), undefined);
  });

  it("is there once, however often it was sent", async () => {
    const { sender, receiver } = await queue({ detects_duplicates: true });
    for (let i = 0; i < 3; i++) await sender.sendMessages({ body: i, messageId: "same" });
    await sender.sendMessages([{ body: 3, messageId: "same" }, { body: 4, messageId: "other" }]);
    assert.deepEqual((await receiver.peekMessages(10)).map(({ body }) => body), [0, 4]);
  });
});

describe("what cannot be done", () => {
  it("is to use what is not there", async () => {
    const text = /The messaging entity 'nowhere' could not be found/;
    for (const fail of [() => client.createSender("nowhere").sendMessages({ body: 1 }), () => one(client.createReceiver("nowhere")),
      () => client.createReceiver("nowhere").peekMessages(1), () => client.createSender("nowhere").scheduleMessages({ body: 1 }, new Date(Date.now() + 1000))]) {
      const error = await refusal(fail());
      assert.equal(error.code, "MessagingEntityNotFound");
      assert.match(error.message, text);
    }
  });

  it("is to send what is too large", async () => {
    const { sender, receiver } = await queue();
    assert.equal((await refusal(sender.sendMessages({ body: Buffer.alloc(2 << 20) }))).code, "MessageSizeExceeded");
    await sender.sendMessages({ body: "small" });
    assert.equal((await one(receiver)).body, "small");
  });

  it("is to send more than a queue has room for", async () => {
    const { sender } = await queue({ size_max_mb: 1 });
    const body = Buffer.alloc(300_000);
    const sending = async () => { for (let i = 0; i < 4; i++) await sender.sendMessages({ body }); };
    assert.equal((await refusal(sending())).code, "QuotaExceeded");
  });

  it("is to use a queue that is disabled", async () => {
    const { name, sender } = await queue();
    await sender.sendMessages({ body: 1 });
    await baton.http("POST", `/bus/entities/${name}`, { status: "Disabled" });
    assert.equal((await refusal(sender.sendMessages({ body: 1 }))).code, "MessagingEntityDisabled");
    assert.equal((await refusal(one(client.createReceiver(name)))).code, "MessagingEntityDisabled");
  });

  it("is to use sessions or transactions", async () => {
    const { name, sender, receiver } = await queue();
    assert.match((await refusal(client.acceptSession(name, "one"))).message, /session/);
    await sender.sendMessages({ body: 1, sessionId: "s" });  // a message may name one
    assert.equal((await one(receiver)).sessionId, "s");
    const [host, port] = baton.amqp.split(":");
    const connection = rhea.create_container().connect({ host, port, username: "any", reconnect: false });
    const refused = new Promise((resolve) => connection.on("sender_error", ({ sender: { error } }) => resolve(error.condition)));
    connection.open_sender("anything").local.attach.target = rhea.types.described(rhea.types.wrap_ulong(0x30), rhea.types.wrap_list([]));
    assert.equal(await refused, "amqp:not-implemented");
    connection.close();
  });
});
