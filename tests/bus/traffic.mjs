// Clients of one queue that go on when the broker is killed, and write down in a ledger what they saw. Half of them are of rhea, half of the SDK of Azure.
import { createRequire } from "node:module";
import { ServiceBusClient } from "@azure/service-bus";

const rhea = createRequire(import.meta.url)("rhea");

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const again = 50;  // ms between attempts to connect

// The ids that are to be sent, as far as they are released, and those that have to be sent again.
export class Outbox {
  next = 0;
  released = 0;
  returned = [];

  constructor(count) { this.count = count; }

  release(part) { this.released = Math.min(this.count, Math.ceil(this.count * part)); }

  take() {
    if (this.returned.length) return this.returned.shift();
    return this.next < this.released ? `m-${this.next++}` : undefined;
  }
}

const bodyOf = (id) => Buffer.from(`${id} `.padEnd(200, "x"));

class Client {
  isClosed = false;

  constructor(baton, queue, ledger) { Object.assign(this, { baton, queue, ledger }); }

  // Until it is closed, `connectOnce` again and again: it ends when its connection has.
  run() {
    this.running = (async () => {
      while (!this.isClosed) {
        await this.connectOnce();
        await sleep(again);
      }
    })();
    return this;
  }

  close() {
    this.isClosed = true;
    this.stop?.();
    return this.running;
  }
}

class RheaClient extends Client {
  // Resolves when the connection has ended, whoever ended it.
  connectOnce() {
    const [host, port] = this.baton.amqp.split(":");
    const connection = rhea.create_container().connect({ host, port, username: "any", reconnect: false });
    this.stop = () => connection.close();
    return new Promise((resolve) => {
      const end = () => {
        this.cutOff();
        resolve();
      };
      for (const event of ["disconnected", "connection_close", "connection_error"]) connection.once(event, end);
      for (const event of ["session_error", "sender_error", "receiver_error", "error"]) connection.on(event, () => connection.close());
      this.open(connection);
    });
  }
}

export class RheaSender extends RheaClient {
  constructor(baton, queue, ledger, outbox) { super(baton, queue, ledger); Object.assign(this, { outbox, unsettled: new Map() }); }

  open(connection) {
    const sender = connection.open_sender(this.queue);
    const pump = () => {
      while (sender.sendable() && this.unsettled.size < 100) {
        const id = this.outbox.take();
        if (!id) break;
        this.unsettled.set(sender.send({ durable: true, message_id: id, body: rhea.message.data_section(bodyOf(id)) }), { id, send: this.ledger.sent(id) });
      }
    };
    const settle = (answer) => ({ delivery }) => {
      const found = this.unsettled.get(delivery);
      this.unsettled.delete(delivery);
      if (!found) return;
      this.ledger.answered(found.send, answer);
      if (answer === "refused") this.outbox.returned.push(found.id);
      pump();
    };
    sender.on("accepted", settle("accepted"));
    for (const event of ["rejected", "released", "modified"]) sender.on(event, settle("refused"));
    sender.on("sendable", pump);
    this.timer = setInterval(pump, 10);  // more may be released
  }

  cutOff() {
    clearInterval(this.timer);
    for (const { id, send } of this.unsettled.values()) {
      this.ledger.answered(send, "lost");
      this.outbox.returned.push(id);
    }
    this.unsettled.clear();
  }
}

// Rhea gives a section with its content, the SDK the content.
function checkBody(ledger, id, body) {
  const content = body?.content ?? body;
  if (!Buffer.isBuffer(content) || !content.equals(bodyOf(id))) ledger.mistakes.push(`${id} has another body: ${content}`);
}

export class RheaReceiver extends RheaClient {
  held = new Set();

  // "second": completions are answered. "first": they are settled at once, so that nobody knows whether they arrived.
  constructor(baton, queue, ledger, settle) { super(baton, queue, ledger); this.settle = settle; }

  open(connection) {
    const receiver = connection.open_receiver({ source: this.queue, credit_window: 50, autoaccept: false, rcv_settle_mode: this.settle === "second" ? 1 : 0 });
    const entries = new Map();
    receiver.on("message", ({ message, delivery }) => {
      checkBody(this.ledger, message.message_id, message.body);
      const { "x-opt-sequence-number": sequence, "x-opt-locked-until": lockedUntil } = message.message_annotations ?? {};
      const entry = this.ledger.received(message.message_id, { sequence: Number(sequence), count: message.delivery_count ?? 0, lockedUntil: Number(lockedUntil), by: `rhea, settles ${this.settle}` });
      this.held.add(entry);
      entries.set(delivery, entry);
      // Some time for the work, so that a kill finds messages in every state.
      setTimeout(() => {
        if (entry.end) return;
        this.ledger.ask(entry);
        delivery.accept();
        if (this.settle === "first") this.end(entry, "unanswered");
      }, Math.random() * 20);
    });
    receiver.on("settled", ({ delivery }) => {
      const entry = entries.get(delivery);
      entries.delete(delivery);
      if (!entry) return;
      this.end(entry, delivery.remote_state?.constructor?.composite_type === "accepted" ? "completed" : "refused");
      delivery.update(true);
    });
  }

  end(entry, how) {
    this.held.delete(entry);
    this.ledger.ended(entry, how);
  }

  cutOff() {
    for (const entry of this.held) this.ledger.cutOff(entry);
    this.held.clear();
  }
}

// The lock tokens whose completion $management has answered, which is the SDK's way when the link of a message is gone. It only looks on: the SDK makes that
// client when it needs it.
function watchManagement(receiver) {
  const context = receiver._context;
  if (context.answeredTokens) return context.answeredTokens;
  const answered = context.answeredTokens = new Set(), find = context.getManagementClient.bind(context);
  context.getManagementClient = (...path) => {
    const management = find(...path);
    if (management.isWatched) return management;
    const update = management.updateDispositionStatus.bind(management);
    management.isWatched = true;
    management.updateDispositionStatus = async (token, ...more) => {
      const result = await update(token, ...more);
      answered.add(token);
      return result;
    };
    return management;
  };
  return answered;
}

class AzureClient extends Client {
  connect(retries = 0) {
    return new ServiceBusClient(this.baton.connectionString(), { retryOptions: { maxRetries: retries, retryDelayInMs: 50, maxRetryDelayInMs: 200, timeoutInMs: 3000 } });
  }

  receive({ messageId, body, sequenceNumber, deliveryCount, lockedUntilUtc }) {
    checkBody(this.ledger, messageId, body);
    return this.ledger.received(messageId, { sequence: sequenceNumber.toNumber(), count: deliveryCount, lockedUntil: lockedUntilUtc.getTime(), by: "SDK" });
  }

  async complete(receiver, message, entry) {
    this.ledger.ask(entry);
    const server = this.baton.process;
    try {
      const answered = watchManagement(receiver);
      await receiver.completeMessage(message);
      // After a reconnect completeMessage of the SDK (7.9.5) was seen to succeed without any answer to this delivery. By its source, onMessageSettled finds
      // who waits by the delivery id alone, which begins anew with each session. So what counts is what came over the wire.
      entry.way = message.delivery.remote_settled ? "link" : answered.has(message.lockToken) ? "management" : "mistaken";
      this.ledger.ended(entry, entry.way === "mistaken" ? "mistaken" : "completed");
    } catch (error) {
      if (this.baton.process !== server) this.ledger.ask(entry);  // the SDK has asked again, of the next server
      // Any other error leaves open whether it was done.
      this.ledger.ended(entry, error.code === "MessageLockLost" ? "refused" : "unanswered");
    }
  }
}

// Batches; without retries of the SDK's own, which nobody could count.
export class AzureSender extends AzureClient {
  constructor(baton, queue, ledger, outbox) { super(baton, queue, ledger); this.outbox = outbox; }

  async connectOnce() {
    const client = this.connect(), sender = client.createSender(this.queue);
    for (let works = true; works && !this.isClosed;) works = await this.sendSome(sender);
    await client.close().catch(() => {});
  }

  async sendSome(sender) {
    const ids = [];
    for (let id; ids.length < 20 && (id = this.outbox.take());) ids.push(id);
    if (ids.length === 0) return sleep(10).then(() => true);
    const sends = ids.map((id) => this.ledger.sent(id));
    try {
      await sender.sendMessages(ids.map((id) => ({ messageId: id, body: bodyOf(id) })));
      for (const send of sends) this.ledger.answered(send, "accepted");
      return true;
    } catch {
      for (const send of sends) this.ledger.answered(send, "lost");
      this.outbox.returned.push(...ids);
      return false;
    }
  }
}

export class AzureReceiver extends AzureClient {
  // The SDK connects again by itself here, as it does for its users.
  run() {
    const client = this.connect(1000), receiver = client.createReceiver(this.queue, { maxAutoLockRenewalDurationInMs: 0 });
    const subscription = receiver.subscribe({
      processMessage: async (message) => {
        const entry = this.receive(message);
        await sleep(Math.random() * 10);
        await this.complete(receiver, message, entry);
      },
      processError: async () => {},
    }, { maxConcurrentCalls: 20, autoCompleteMessages: false });
    this.close = async () => {
      await subscription.close().catch(() => {});
      await client.close().catch(() => {});
    };
    return this;
  }
}

// Sends a few messages before a kill, receives them, and completes them after it: their locks have to be good until then, though another receiver wants them.
export class LockHolder extends AzureClient {
  survived = 0;

  async beforeKill(round) {
    const ids = [0, 1, 2].map((i) => `h-${round}-${i}`), client = this.connect(), sends = ids.map((id) => this.ledger.sent(id));
    await client.createSender(this.queue).sendMessages(ids.map((id) => ({ messageId: id, body: bodyOf(id) })));
    for (const send of sends) this.ledger.answered(send, "accepted");
    const receiver = client.createReceiver(this.queue, { maxAutoLockRenewalDurationInMs: 0 });
    const messages = await receiver.receiveMessages(ids.length, { maxWaitTimeInMs: 5000 });
    this.held = { client, receiver, messages, entries: messages.map((message) => this.receive(message)) };
    this.rival = new RheaReceiver(this.baton, this.queue, this.ledger, "second").run();
  }

  async afterStart() {
    await sleep(200);  // so that the rival is there again, and would get what is not locked
    const { client, receiver, messages, entries } = this.held;
    await Promise.all(messages.map((message, i) => this.complete(receiver, message, entries[i])));
    this.survived += entries.filter(({ end }) => end === "completed").length;
    await client.close().catch(() => {});
    await this.rival.close();
  }
}

// What a site speaks, with the real SDK, over kills: `send` goes on until the message was accepted.
export class PatientAzureBus {
  sent = 0;
  receivers = [];

  constructor(baton) {
    this.baton = baton;
    this.client = baton.client(undefined, 1000);
  }

  receive(topic, subscription, handle, queue) {
    const receiver = queue ? this.client.createReceiver(queue) : this.client.createReceiver(topic, subscription);
    const processMessage = async ({ body, applicationProperties, deliveryCount, lockedUntilUtc }) =>
      handle(body, applicationProperties, { count: deliveryCount, lockedUntil: lockedUntilUtc.getTime() });
    receiver.subscribe({ processMessage, processError: async () => {} }, { maxConcurrentCalls: 10 });
    return receiver;
  }

  // Without retries of the SDK's own: a sender that failed is opened again.
  async send(topic, body, applicationProperties) {
    for (;; await sleep(again)) {
      this.sender ??= { client: this.baton.client(), senders: new Map() };
      const { client, senders } = this.sender;
      if (!senders.has(topic)) senders.set(topic, client.createSender(topic));
      this.sent++;
      try {
        return await senders.get(topic).sendMessages({ body, contentType: "application/json", applicationProperties });
      } catch {
        if (this.sender?.client !== client) continue;  // somebody else has opened it again
        this.sender = undefined;
        client.close().catch(() => {});
      }
    }
  }

  async close() {
    await this.client.close().catch(() => {});
    await this.sender?.client.close().catch(() => {});
  }
}
