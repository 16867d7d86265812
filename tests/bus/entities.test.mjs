// What an entity lets its clients do, whatever they call it and however long they are attached.
import assert from "node:assert/strict";
import rhea from "rhea";
import { Baton, refusal, until } from "./baton.mjs";
import { after, before, describe, it } from "./testing.mjs";

const next = (on, event) => new Promise((resolve) => on.once(event, resolve));

let baton;
before(async () => { baton = await Baton.start(); });
after(() => baton.stop());

function connect() {
  const [host, port] = baton.amqp.split(":");
  return rhea.create_container().connect({ host, port, reconnect: false, username: "any" });
}

describe("what is baton's own", () => {
  it("is refused however its address is escaped", async () => {
    const connection = connect();
    for (const [address, condition] of [
      ["orchestrator-events/Subscriptions/orchestrator", "amqp:not-allowed"],
      ["orchestrator-events%2FSubscriptions%2Forchestrator", "amqp:not-allowed"],
      ["worker-results%2fsubscriptions/orchestrator", "amqp:not-allowed"],
      ["orchestrator-events%252FSubscriptions%252Forchestrator", "amqp:not-found"],
    ]) {
      const receiver = connection.open_receiver(address);
      await next(receiver, "receiver_error");
      assert.equal(receiver.error.condition, condition, address);
    }
    connection.close();
  });

  it("gives no message to its management, however its address is escaped", async () => {
    const connection = connect();
    const address = "orchestrator-events%2FSubscriptions%2Forchestrator/$management";
    const answers = connection.open_receiver({ source: address, target: "me" });
    await next(answers, "receiver_open");
    const sender = connection.open_sender(address);
    await next(sender, "sendable");
    sender.send({ message_id: "1", reply_to: "me", application_properties: { operation: "com.microsoft:receive-by-sequence-number" },
      body: { "sequence-numbers": rhea.types.wrap_array([1], 0x81), "receiver-settle-mode": rhea.types.wrap_uint(0) } });
    const { message } = await next(answers, "message");
    assert.equal(message.application_properties["status-code"], 401);
    connection.close();
  });
});

describe("a receiver that is attached", () => {
  it("is sent away when its queue is disabled, though it has always something to do", async () => {
    await baton.make("queue", "busy");
    const connection = connect(), sender = baton.client().createSender("busy");
    const receiver = connection.open_receiver({ source: "busy", credit_window: 100 });
    let received = 0;
    receiver.on("message", () => received++);
    const sending = setInterval(() => sender.sendMessages({ body: 1 }).catch(() => {}), 100);
    try {
      await until("messages", () => received > 3);
      const ended = next(receiver, "receiver_error");
      await baton.http("POST", "/bus/entities/busy", { status: "ReceiveDisabled" });
      const late = setTimeout(() => receiver.emit("receiver_error"), 8000);
      await ended;
      clearTimeout(late);
      assert.equal(receiver.error?.condition, "com.microsoft:entity-disabled");
    } finally {
      clearInterval(sending);
      connection.close();
    }
  });

  it("hears that a deferred message cannot be had while its queue is disabled", async () => {
    await baton.make("queue", "deferred");
    const client = baton.client();
    await client.createSender("deferred").sendMessages({ body: 1 });
    const receiver = client.createReceiver("deferred");
    const [message] = await receiver.receiveMessages(1, { maxWaitTimeInMs: 5000 });
    await receiver.deferMessage(message);
    await baton.http("POST", "/bus/entities/deferred", { status: "Disabled" });
    assert.match(`${(await refusal(receiver.receiveDeferredMessages(message.sequenceNumber))).code}`, /MessagingEntityDisabled/);
    await baton.http("POST", "/bus/entities/deferred", { status: "Active" });
    assert.equal((await receiver.receiveDeferredMessages(message.sequenceNumber)).length, 1);
  });
});

describe("who looks at messages and does not read what it is answered", () => {
  it("is told to try again, and nothing more is brought for it", async () => {
    await baton.make("queue", "unread");
    const sender = baton.client().createSender("unread");
    for (let i = 0; i < 5; i++) await sender.sendMessages({ body: Buffer.alloc(1_000_000) });
    const connection = connect(), statuses = [];
    const answers = connection.open_receiver({ source: "unread/$management", target: "me", credit_window: 0 });
    answers.on("message", ({ message }) => statuses.push(message.application_properties["status-code"]));
    await next(answers, "receiver_open");
    const asking = connection.open_sender("unread/$management");
    await next(asking, "sendable");
    const peek = (id) => asking.send({ message_id: `${id}`, reply_to: "me", application_properties: { operation: "com.microsoft:peek-message" },
      body: { "from-sequence-number": rhea.types.wrap_long(1), "message-count": rhea.types.wrap_int(100) } });
    for (let i = 0; i < 10; i++) peek(i);
    await new Promise((resolve) => setTimeout(resolve, 3000));
    for (let i = 0; i < 5; i++) peek(i);
    await new Promise((resolve) => setTimeout(resolve, 500));
    answers.add_credit(15);
    await until("all answers", () => statuses.length === 15, 60);
    assert.deepEqual(statuses, [...Array(10).fill(200), ...Array(5).fill(503)]);
    connection.close();
  });
});
