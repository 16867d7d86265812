// Sessions, links and their credit: what one connection may use of the endpoint, and what becomes of clients that do not keep to the protocol.
import assert from "node:assert/strict";
import rhea from "rhea";
import frames from "rhea/lib/frames.js";
import { Baton, refusal, until } from "./baton.mjs";
import { after, before, describe, it } from "./testing.mjs";

const next = (on, event) => new Promise((resolve) => on.once(event, resolve));
const seconds = (count) => new Promise((resolve) => setTimeout(resolve, 1000 * count));

// A client that is no SDK of Azure.
function connect({ amqp }, options = { username: "any" }) {
  const [host, port] = amqp.split(":");
  return rhea.create_container().connect({ host, port, reconnect: false, ...options });
}
const closed = (on) => new Promise((resolve) => {
  on.on("connection_error", ({ connection: { error } }) => resolve(error?.condition));
  on.on("connection_close", ({ connection: { error } }) => resolve(error?.condition));
  on.on("disconnected", () => resolve("disconnected"));
});
const encoded = (body) => rhea.message.encode({ body });
rhea.types.wrap_delivery_state = (state) => state;  // which rhea never says with a transfer
// A part of a message, whatever the credit is, and over whichever link.
const transfer = (link, id, payload, more = {}) => link.session.output(
  frames.transfer({ handle: link.local.handle, delivery_id: id, delivery_tag: Buffer.from(`${id}`), message_format: 0, settled: false, ...more }), payload);

let baton;
before(async () => { baton = await Baton.start(); });
after(() => baton.stop());

describe("one connection", () => {
  it("has as many senders and receivers as one client of the SDK wants", { timeout: 120_000 }, async () => {
    const client = baton.client();
    const names = Array.from({ length: 200 }, (_, i) => `many-${i}`);
    for (const name of names) await baton.make("queue", name);
    await Promise.all(names.map((name, i) => client.createSender(name).sendMessages({ body: i })));
    const bodies = await Promise.all(names.map(async (name) => {
      const receiver = client.createReceiver(name);
      const [message] = await receiver.receiveMessages(1, { maxWaitTimeInMs: 20_000 });
      await receiver.completeMessage(message);
      return message.body;
    }));
    assert.deepEqual(bodies, names.map((_, i) => i));
  });

  it("has as many links in the course of time as it likes", { timeout: 60_000 }, async () => {
    await baton.make("queue", "again");
    const connection = connect(baton);
    await next(connection, "connection_open");
    for (let round = 0; round < 11; round++) {
      const sessions = Array.from({ length: 100 }, () => connection.create_session());
      for (const session of sessions) session.begin();
      const senders = sessions.map((session) => session.open_sender("again"));
      await until("the links", () => senders.every((sender) => sender.is_remote_open()));
      const ends = sessions.map((session) => next(session, "session_close"));
      for (const session of sessions) session.close();
      await Promise.all(ends);
    }
    assert.ok(connection.is_open());
    connection.close();
  });

  it("is told to send less when it has sent more than is kept for it", { timeout: 60_000 }, async () => {
    // A megabyte short of its end over each of many links: nothing of it can be taken.
    await baton.make("queue", "parts");
    const connection = connect(baton);
    const sessions = Array.from({ length: 25 }, () => connection.create_session());
    for (const session of sessions) session.begin();
    const senders = sessions.flatMap((session) => Array.from({ length: 3 }, () => session.open_sender("parts")));
    await until("credit", () => senders.every((sender) => sender.credit > 0));
    const whole = encoded("x".repeat(1_000_000)), outcomes = [];
    const part = 60_000, parts = Math.ceil(whole.length / part);
    connection.on("rejected", ({ delivery: { remote_state } }) => outcomes.push(remote_state.error.condition));
    connection.on("accepted", () => outcomes.push("accepted"));
    const send = (sender, i, from, to) => {
      for (let at = from; at < to; at++) transfer(sender, i % 3, whole.subarray(at * part, (at + 1) * part), { more: at + 1 < parts });
    };
    // So that rhea knows of them when they are answered.
    senders.forEach((sender, i) => { sender.session.outgoing.deliveries.push({ id: i % 3, link: sender }); });
    senders.forEach((sender, i) => send(sender, i, 0, parts - 1));
    connection._register();
    await seconds(1);
    senders.forEach((sender, i) => send(sender, i, parts - 1, parts));
    connection._register();
    await until("all answers", () => outcomes.length === senders.length, 30);
    const accepted = outcomes.filter((outcome) => outcome === "accepted").length;
    assert.ok(accepted >= 60 && accepted < senders.length, `${accepted}`);
    assert.ok(outcomes.every((outcome) => outcome === "accepted" || outcome === "com.microsoft:server-busy"));
    connection.close();
  });

  it("goes on though one session is full of messages that have no end yet", { timeout: 30_000 }, async () => {
    await baton.make("queue", "full");
    const connection = connect(baton);
    const senders = Array.from({ length: 5 }, () => connection.open_sender("full"));
    await until("credit", () => senders.every((sender) => sender.credit > 0));
    const whole = encoded("x".repeat(1_000_000)), part = 60_000, parts = Math.ceil(whole.length / part), outcomes = [];
    connection.on("rejected", ({ delivery: { remote_state } }) => outcomes.push(remote_state.error.condition));
    connection.on("accepted", () => outcomes.push("accepted"));
    const { outgoing } = senders[0].session;
    senders.forEach((sender, id) => { outgoing.deliveries.push({ id, link: sender }); });
    // A part of each in turn, as the window allows.
    for (let at = 0; at < parts; at++)
      for (const [id, sender] of senders.entries()) {
        await until("a window", () => outgoing.transfer_window() > 0, 5);
        outgoing.next_transfer_id++;
        transfer(sender, id, whole.subarray(at * part, (at + 1) * part), { more: at + 1 < parts });
        connection._register();
      }
    await until("all answers", () => outcomes.length === senders.length);
    assert.ok(outcomes.filter((outcome) => outcome === "accepted").length >= 3, `${outcomes}`);
    connection.close();
  });
});

describe("a receiver that deletes", () => {
  it("gets every message, however often it changes its mind about its credit", { timeout: 60_000 }, async () => {
    await baton.make("queue", "deleting");
    const sender = baton.client().createSender("deleting");
    const connection = connect(baton);
    const receiver = connection.open_receiver({ source: "deleting", credit_window: 0, snd_settle_mode: 1, rcv_settle_mode: 0 });
    await next(connection, "receiver_open");
    const bodies = [];
    receiver.on("message", ({ message }) => bodies.push(message.body));
    const count = 400, sending = [];
    for (let i = 0; i < count; i++) {
      receiver.drain = false;
      receiver.add_credit(5);
      sending.push(sender.sendMessages({ body: i }));
      if (i % 4 === 0) await sending.at(-1);
      else await new Promise((resolve) => setTimeout(resolve, i % 3));
      receiver.drain = true;
      receiver.add_credit(1);
      await until("the end of the credit", () => receiver.credit === 0);
    }
    await Promise.all(sending);
    receiver.drain = false;
    receiver.add_credit(count);
    await until("all messages", () => bodies.length >= count).catch(() => {});
    assert.equal(new Set(bodies).size, count);
    assert.equal(bodies.length, count);
    await until("the end of all locks", async () => (await baton.http("GET", "/bus/entities/deleting")).counts.active === 0);
    connection.close();
  });
});

describe("a drain", () => {
  it("that follows fresh credit brings what waits", async () => {
    await baton.make("queue", "fresh");
    const sender = baton.client().createSender("fresh");
    const connection = connect(baton);
    const open = () => connection.open_receiver({ source: "fresh", credit_window: 0 });
    const receiver = open(), other = open();
    await until("the links", () => receiver.is_remote_open() && other.is_remote_open());
    const bodies = [];
    receiver.on("message", ({ message }) => bodies.push(message.body));
    for (let i = 0; i < 20; i++) {
      await sender.sendMessages({ body: i });
      receiver.credit = 5;
      receiver.drain = false;
      const drained = next(receiver, "receiver_drained");
      receiver.session._write_flow(receiver);
      other.session._write_flow(other);  // or the server would see but one of them
      receiver.drain = true;
      receiver.session._write_flow(receiver);
      connection._register();
      await drained;
      assert.equal(bodies.length, i + 1);
    }
    connection.close();
  });

  it("is answered though nothing more can be given", { timeout: 60_000 }, async () => {
    await baton.make("queue", "held");
    const sender = baton.client().createSender("held"), count = 5001;
    for (let i = 0; i < count; i += 1000) await sender.sendMessages(Array.from({ length: Math.min(1000, count - i) }, () => ({ body: "x" })));
    const connection = connect(baton, { username: "any", session_buffer_size: 10_000 });
    const receiver = connection.open_receiver({ source: "held", credit_window: 0, autoaccept: false });
    let received = 0;
    receiver.on("message", () => { received++; });
    receiver.add_credit(count);
    await until("as many as one link holds", () => received === 5000, 30);
    const drained = next(receiver, "receiver_drained");
    receiver.drain_credit();
    await drained;
    assert.equal(received, 5000);
    connection.close();
  });
});

describe("what is asked of $management", () => {
  const workflow = "workflow_id: asked\nnodes:\n  start: {type: start, next: [t]}\n  t: {type: task, handler: H, queue: asked, next: [end]}\n  end: {type: end}\n";
  before(() => baton.http("POST", "/workflows", workflow, "application/yaml"));
  const ask = (connection, count) => {
    const sender = connection.open_sender("asked/$management");
    const requests = Array.from({ length: count }, (_, id) => ({ message_id: `${id}`, reply_to: "me", body: {}, application_properties: { operation: "com.microsoft:renew-lock" } }));
    sender.on("sendable", () => { while (sender.sendable() && requests.length) sender.send(requests.shift()); });
  };

  it("is answered, however much it is", async () => {
    const connection = connect(baton), answers = [];
    const receiver = connection.open_receiver({ source: "asked/$management", target: "me" });
    receiver.on("message", ({ message }) => answers.push(message.correlation_id));
    await next(connection, "receiver_open");
    ask(connection, 100);
    await until("all answers", () => answers.length === 100);
    connection.close();
  });

  it("by who takes no answers ends its link", async () => {
    const connection = connect(baton);
    connection.open_receiver({ source: "asked/$management", target: "me", credit_window: 0 });
    await next(connection, "receiver_open");
    const ended = new Promise((resolve) => connection.once("sender_error", ({ sender }) => resolve(sender.error.condition)));
    ask(connection, 100);
    assert.equal(await ended, "amqp:resource-limit-exceeded");
    connection.close();
  });
});

describe("a client that does not keep to the protocol", () => {
  it("settles nothing by sending over a link that receives", async () => {
    for (const name of ["theirs", "ours"]) await baton.make("queue", name);
    const client = baton.client();
    await client.createSender("theirs").sendMessages({ body: 1 });
    const holder = client.createReceiver("theirs");
    const [message] = await holder.receiveMessages(1, { maxWaitTimeInMs: 5000 });
    const connection = connect(baton);
    const receiver = connection.open_receiver({ source: "ours", credit_window: 0 });
    await next(connection, "receiver_open");
    const end = closed(connection);
    const token = Buffer.from(message.lockToken.replaceAll("-", ""), "hex");
    const tag = Buffer.from([3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15].map((from) => token[from]));
    for (const delivery_tag of [tag, message.delivery.tag])
      transfer(receiver, 0, encoded("x"), { delivery_tag, settled: true, state: rhea.message.accepted().described() });
    connection._register();
    assert.equal(await end, "disconnected");
    await holder.completeMessage(message);
  });

  it("receives nothing more, though it does not read that it is sent away", { timeout: 60_000 }, async () => {
    for (const name of ["unread", "waiting"]) await baton.make("queue", name);
    const client = baton.client(), sender = client.createSender("unread");
    for (let i = 0; i < 30; i++) await sender.sendMessages({ body: Buffer.alloc(1_000_000) });
    const connection = connect(baton);
    const [first, second] = ["unread", "waiting"].map((source) => {
      const session = connection.create_session();
      session.begin();
      return session.open_receiver({ source, credit_window: 0 });
    });
    await until("the links", () => first.is_remote_open() && second.is_remote_open());
    second.add_credit(1);
    await seconds(0.2);
    connection.socket.pause();
    first.add_credit(30);
    await seconds(1);
    first.session.output(frames.transfer({ handle: 99, delivery_id: 0, delivery_tag: Buffer.from("x") }), encoded("x"));
    connection._register();
    await seconds(0.2);
    await client.createSender("waiting").sendMessages({ body: "x" });
    const [message] = await client.createReceiver("waiting").receiveMessages(1, { maxWaitTimeInMs: 1500 });
    assert.equal(message?.body, "x");
    const end = closed(connection);
    connection.socket.resume();
    await end;
  });

  it("is not sent what others are given instead", { timeout: 60_000 }, async () => {
    for (const name of ["clogged", "other"]) await baton.make("queue", name);
    const client = baton.client(), sender = client.createSender("clogged"), count = 30;
    for (let i = 0; i < count; i++) await sender.sendMessages({ messageId: `${i}`, body: Buffer.alloc(1_000_000) });
    const connection = connect(baton);
    const receiver = connection.open_receiver({ source: "clogged", credit_window: 0, autoaccept: false }), sending = connection.open_sender("other");
    const ids = [];
    receiver.on("message", ({ message }) => {
      assert.equal(message.body.content.length, 1_000_000);
      ids.push(message.message_id);
    });
    await until("the links", () => receiver.is_remote_open() && sending.credit > 0);
    connection.socket.pause();
    receiver.add_credit(count);
    await seconds(1);
    const end = closed(connection);
    for (let i = 0; i < 20_000; i++) transfer(sending, i, encoded("x"));
    connection._register();
    await seconds(0.3);
    connection.socket.resume();
    assert.equal(await end, "amqp:link:transfer-limit-exceeded");
    assert.ok(ids.length > 0 && ids.length < count, `${ids.length}`);
    const deleting = client.createReceiver("clogged", { receiveMode: "receiveAndDelete" }), others = [];
    for (let got = [{}]; got.length; others.push(...got.map(({ messageId }) => messageId))) got = await deleting.receiveMessages(count, { maxWaitTimeInMs: 1000 });
    assert.ok(others.length > 0);
    assert.deepEqual(ids.filter((id) => others.includes(id)), []);
    assert.equal(ids.length + others.length, count);
  });

  it("is sent away if it sends more than it was given credit for", async () => {
    await baton.make("queue", "credit");
    const connection = connect(baton);
    const sender = connection.open_sender("credit");
    await next(connection, "sendable");
    const end = closed(connection);
    for (let i = 0; i < 20_000; i++) transfer(sender, i, encoded("x"));
    connection._register();
    assert.equal(await end, "amqp:link:transfer-limit-exceeded");
  });
});

describe("a client without a token", () => {
  let guarded;
  before(async () => {
    guarded = new Baton();
    guarded.token = JSON.parse(guarded.command("token", "create", "--json", "--role", "admin")).token;
    await guarded.start();
  });
  after(() => guarded.stop());

  it("shows one token at a time", async () => {
    const connection = connect(guarded, { username: "anonymous" });
    connection.open_receiver({ source: "$cbs", target: "me" });
    const sender = connection.open_sender("$cbs");
    await next(connection, "sendable");
    const end = closed(connection);
    const request = rhea.message.encode({ message_id: "1", reply_to: "me", body: "SharedAccessSignature sr=x&sig=x&se=9999999999&skn=x", application_properties: { operation: "put-token" } });
    for (let i = 0; i < 50; i++) transfer(sender, i, request);
    connection._register();
    assert.equal(await end, "amqp:link:transfer-limit-exceeded");
  });

  it("has few links", async () => {
    const connection = connect(guarded, { username: "anonymous" });
    await next(connection, "connection_open");
    connection.on("receiver_error", () => {});
    const end = closed(connection);
    for (let i = 0; i < 9; i++) connection.open_receiver("$cbs");
    assert.equal(await end, "amqp:resource-limit-exceeded");
  });

  it("has short names for them", async () => {
    const connection = connect(guarded, { username: "anonymous" });
    await next(connection, "connection_open");
    const end = closed(connection);
    connection.open_receiver({ source: "$cbs", name: "x".repeat(2000) });
    assert.equal(await end, "amqp:invalid-field");
  });

  it("has many of them once its password is known", async () => {
    for (let i = 0; i < 20; i++) await guarded.make("queue", `after-${i}`);
    const connection = connect(guarded, { username: "any", password: guarded.token });
    const receivers = Array.from({ length: 20 }, (_, i) => connection.open_receiver(`after-${i}`));  // before that
    await until("the links", () => receivers.every((receiver) => receiver.is_remote_open()));
    connection.close();
  });

  it("has few sessions", async () => {
    const connection = connect(guarded, { username: "anonymous" });
    await next(connection, "connection_open");
    const end = closed(connection);
    for (let i = 0; i < 65; i++) connection.create_session().begin();
    assert.equal(await end, "amqp:resource-limit-exceeded");
  });
});
