// Workers and schedulers of Azure Service Bus, with its real SDK, against the endpoint of the real binary.
import assert from "node:assert/strict";
import rhea from "rhea";
import { Baton, refusal, until } from "./baton.mjs";
import { after, before, describe, it } from "./testing.mjs";

const workflow = (id, more = "") => `
workflow_id: ${id}
nodes:
  start: {type: start, next: [work]}
  work: {type: task, handler: Resize, queue: functionapp-tasks, next: [end]${more}}
  end: {type: end}
`;

const result = (job, more = {}) => ({
  body: { task_id: job.body.task_id, status: "completed", output: { done: true }, ...more },
  contentType: "application/json",
});

let baton;
before(async () => { baton = await Baton.start("--bus-lock-seconds", "2"); });
after(() => baton.stop());

const publish = (id, more) => baton.http("POST", "/workflows", workflow(id, more), "application/yaml");
const submit = (id, input = {}) => baton.http("POST", "/jobs", { workflow_id: id, input_data: input });
const ended = (job) => until("the job's end", async () => {
  const view = await baton.http("GET", `/jobs/${job.job_id}`);
  return ["COMPLETED", "FAILED", "CANCELLED"].includes(view.status) && view;
});
const one = async (receiver, wait = 5000) => (await receiver.receiveMessages(1, { maxWaitTimeInMs: wait }))[0];

describe("a task of a workflow", () => {
  let client, receiver, sender;
  before(async () => {
    client = baton.client();
    receiver = client.createReceiver("functionapp-tasks");
    sender = client.createSender("worker-results");
    await publish("resize");
    await publish("twice", ", retry: {max_retries: 0}");
  });

  it("is received, completed and answered", async () => {
    const job = await submit("resize", { width: 7 });
    const message = await one(receiver);
    assert.equal(message.messageId, message.body.task_id);
    assert.equal(message.contentType, "application/json");
    assert.deepEqual(message.applicationProperties, { WorkerId: "functionapp-tasks", FunctionName: "Resize" });
    assert.deepEqual(message.body.params, { width: 7 });
    assert.equal(message.deliveryCount, 0);
    assert.ok(message.lockedUntilUtc > new Date());
    await receiver.completeMessage(message);
    await sender.sendMessages(result(message));
    assert.equal((await ended(job)).status, "COMPLETED");
  });

  it("may be completed after its result was sent", async () => {
    const job = await submit("resize");
    const message = await one(receiver);
    await sender.sendMessages(result(message));
    assert.equal((await ended(job)).status, "COMPLETED");
    await receiver.completeMessage(message);
  });

  it("that is completed is its worker's longer than the lock", async () => {
    const job = await submit("resize");
    const message = await one(receiver);
    await receiver.completeMessage(message);
    assert.equal(await one(receiver, 3500), undefined);
    await sender.sendMessages(result(message));
    assert.equal((await ended(job)).status, "COMPLETED");
  });

  it("that is completed stays its worker's though a heartbeat comes late", async () => {
    const job = await submit("resize");
    const message = await one(receiver);
    await receiver.completeMessage(message);
    const { task_id, lease } = message.body;
    await baton.http("POST", "/workers/heartbeat", { worker: "late", tasks: [{ task_id, lease }] });
    const { lease_until: until } = await baton.http("GET", `/jobs/${job.job_id}/nodes/work`);
    assert.ok(new Date(until) > Date.now() + 100_000, until);
    await sender.sendMessages(result(message));
    assert.equal((await ended(job)).status, "COMPLETED");
  });

  it("that is abandoned is delivered again, and counted", async () => {
    const job = await submit("resize");
    const first = await one(receiver);
    await receiver.abandonMessage(first);
    const second = await one(receiver);
    assert.equal(second.body.task_id, first.body.task_id);
    assert.equal(second.deliveryCount, 1);
    await receiver.completeMessage(second);
    await sender.sendMessages(result(second));
    assert.equal((await ended(job)).status, "COMPLETED");
  });

  it("that is abandoned ten times is a dead letter", async () => {
    const job = await submit("twice");
    for (let i = 0; i < 10; i++) await receiver.abandonMessage(await one(receiver));
    const view = await ended(job);
    assert.equal(view.status, "FAILED");
    const { dead_letters: dead } = await baton.http("GET", "/dead-letters");
    assert.ok(dead.some((letter) => letter.job_id === job.job_id), JSON.stringify(dead));
  });

  it("that its worker dead-letters is one, for that reason", async () => {
    const job = await submit("resize");
    await receiver.deadLetterMessage(await one(receiver), { deadLetterReason: "no such file", deadLetterErrorDescription: "7.png" });
    const view = await ended(job);
    assert.equal(view.status, "FAILED");
    assert.match(JSON.stringify(view), /no such file: 7\.png/);
  });

  it("goes to another worker when its lock is lost, and the first hears of it", async () => {
    const job = await submit("resize");
    const silent = client.createReceiver("functionapp-tasks", { maxAutoLockRenewalDurationInMs: 0 });
    const first = await one(silent);
    const second = await one(receiver, 6000);
    assert.equal(second.body.task_id, first.body.task_id);
    assert.equal(second.deliveryCount, 1);
    assert.equal((await refusal(silent.completeMessage(first))).code, "MessageLockLost");
    await sender.sendMessages(result(second));
    assert.equal((await ended(job)).status, "COMPLETED");
  });

  it("stays its worker's while the lock is renewed", async () => {
    const job = await submit("resize");
    const message = await one(receiver);
    for (let i = 0; i < 3; i++) {
      await new Promise((resolve) => setTimeout(resolve, 1200));
      assert.ok(await receiver.renewMessageLock(message) > new Date());
    }
    assert.equal(await one(client.createReceiver("functionapp-tasks"), 300), undefined);
    await receiver.completeMessage(message);
    await sender.sendMessages(result(message));
    assert.equal((await ended(job)).status, "COMPLETED");
  });

  it("is taken at once by who receives and deletes", async () => {
    const job = await submit("resize");
    const deleting = client.createReceiver("functionapp-tasks", { receiveMode: "receiveAndDelete" });
    const message = await one(deleting);
    assert.equal(await one(receiver, 3000), undefined);
    await sender.sendMessages(result(message));
    assert.equal((await ended(job)).status, "COMPLETED");
  });

  it("is one of many that a subscriber gets as they come", async () => {
    const jobs = await Promise.all(Array.from({ length: 50 }, () => submit("resize")));
    const subscriber = client.createReceiver("functionapp-tasks");
    const errors = [];
    subscriber.subscribe({
      processMessage: (message) => sender.sendMessages(result(message)),
      processError: async ({ error }) => { errors.push(error); },
    }, { maxConcurrentCalls: 8 });
    for (const job of jobs) assert.equal((await ended(job)).status, "COMPLETED");
    await subscriber.close();
    assert.deepEqual(errors, []);
  });

  it("may be answered together with others, in one batch", async () => {
    const jobs = await Promise.all(Array.from({ length: 5 }, () => submit("resize")));
    const messages = [];
    while (messages.length < 5) messages.push(await one(receiver));
    for (const message of messages) await receiver.completeMessage(message);
    await sender.sendMessages(messages.map((message) => result(message)));
    for (const job of jobs) assert.equal((await ended(job)).status, "COMPLETED");
  });
});

describe("a client that is no SDK", () => {
  const connect = () => {
    const [host, port] = baton.amqp.split(":");
    return rhea.create_container().connect({ host, port, username: "any", reconnect: false });
  };
  const next = (on, event) => new Promise((resolve) => on.once(event, resolve));

  it("may send without waiting for an answer", async () => {
    const [first, second] = [await submit("resize"), await submit("resize")];
    const connection = connect();
    const receiver = connection.open_receiver({ source: "functionapp-tasks", credit_window: 0, autoaccept: false });
    const bodies = [];
    connection.on("message", ({ message }) => bodies.push(JSON.parse(message.body.content)));
    receiver.add_credit(2);
    await until("both tasks", () => bodies.length === 2);
    const sender = connection.open_sender({ target: "worker-results", snd_settle_mode: 2 });
    await next(connection, "sendable");
    const body = (task) => JSON.stringify({ task_id: task.task_id, status: "completed" });
    sender.send({ body: body(bodies[0]) }).update(true);
    const accepted = next(connection, "accepted");
    sender.send({ body: body(bodies[1]) });
    await accepted;
    for (const job of [first, second]) assert.equal((await ended(job)).status, "COMPLETED");
    connection.close();
  });

  it("is given what there is when it drains", async () => {
    const job = await submit("resize");
    const connection = connect();
    const receiver = connection.open_receiver({ source: "functionapp-tasks", credit_window: 0, autoaccept: false });
    await next(connection, "receiver_open");
    const got = next(connection, "message");
    receiver.drain = true;
    receiver.add_credit(5);
    const { message, delivery } = await got;
    const { task_id } = JSON.parse(message.body.content);
    delivery.accept();
    await baton.http("POST", "/callbacks/task-result", { task_id, status: "completed" });
    assert.equal((await ended(job)).status, "COMPLETED");
    connection.close();
  });

  it("hears that there are no sessions", async () => {
    const error = await refusal(baton.client().acceptSession("functionapp-tasks", "one"));
    assert.match(error.message, /session/);
  });
});

describe("what cannot be taken", () => {
  it("is refused with what is wrong with it", async () => {
    const sender = baton.client().createSender("worker-results");
    for (const body of ["no JSON", { task_id: "x" }, { status: "completed" }, Buffer.from([0, 1, 2])]) {
      const error = await refusal(sender.sendMessages({ body }));
      assert.ok(error.message.length > 10, error.message);
    }
    const error = await refusal(sender.sendMessages({ body: { task_id: "nobody_knows_0", status: "completed" } }));
    assert.match(error.message, /no task/);
  });

  it("is too large for a message", async () => {
    const sender = baton.client().createSender("worker-results");
    assert.equal((await refusal(sender.sendMessages({ body: Buffer.alloc(2 << 20) }))).code, "MessageSizeExceeded");
  });

  it("is an entity that does not exist", async () => {
    const client = baton.client();
    assert.equal((await refusal(client.createSender("no-such-topic").sendMessages({ body: {} }))).code, "MessagingEntityNotFound");
    const receiver = client.createReceiver("worker-jobs", "no-pool");
    assert.equal((await refusal(receiver.receiveMessages(1, { maxWaitTimeInMs: 1000 }))).code, "MessagingEntityNotFound");
  });

  it("is a subscription that baton itself receives from", async () => {
    const receiver = baton.client().createReceiver("worker-results", "orchestrator");
    const error = await refusal(receiver.receiveMessages(1, { maxWaitTimeInMs: 1000 }));
    assert.match(error.message, /baton itself/);
  });
});
