// Topics with subscriptions and rules, with the real SDK of Azure Service Bus against the endpoint of the real binary.
import assert from "node:assert/strict";
import Long from "long";
import { Baton, refusal, until } from "./baton.mjs";
import { after, before, describe, it } from "./testing.mjs";

const one = async (receiver, wait = 5000) => (await receiver.receiveMessages(1, { maxWaitTimeInMs: wait }))[0];
const rule = (name, expression, action) => ({ name, sql: { expression }, ...(action && { action: { expression: action } }) });

let baton, client, made = 0;
before(async () => {
  baton = await Baton.start("--bus-lock-seconds", "5");
  client = baton.client();
});
after(() => baton.stop());

// A topic of its own for each test, with subscriptions that have these rules.
async function topic(subscriptions, settings) {
  const name = `topic-${++made}`;
  await baton.make("topic", name, settings);
  const receivers = {};
  for (const [subscription, rules] of Object.entries(subscriptions)) {
    await baton.make("subscription", `${name}/Subscriptions/${subscription}`, rules ? { rules } : {});
    receivers[subscription] = client.createReceiver(name, subscription);
  }
  return { name, sender: client.createSender(name), ...receivers };
}
const bodies = async (receiver) => (await receiver.peekMessages(20)).map(({ body }) => body);

describe("a subscription", () => {
  it("without rules of its own gets everything, each one a copy", async () => {
    const { sender, a, b } = await topic({ a: null, b: null });
    await sender.sendMessages({ body: 1, subject: "s" });
    const first = await one(a), second = await one(b);
    assert.equal(first.body, 1);
    assert.equal(second.subject, "s");
    await a.completeMessage(first);
    await b.abandonMessage(second);
    assert.equal(await one(a, 300), undefined);
    assert.equal((await one(b)).deliveryCount, 1);
  });

  it("with an SQL filter gets what that selects", async () => {
    const { sender, eu, large } = await topic({
      eu: [rule("r", "region LIKE 'eu-%' AND sys.Label <> 'test'")],
      large: [rule("r", "amount > 100"), rule("other", "EXISTS(vip)")],
    });
    const send = (body, subject, applicationProperties) => sender.sendMessages({ body, subject, applicationProperties });
    await send(1, "order", { region: "eu-1", amount: 5 });
    await send(2, "test", { region: "eu-1", amount: 500 });
    await send(3, "order", { region: "us", amount: 1.5, vip: true });
    await send(4, "order", { region: "eu-2", amount: 101, vip: 1 });
    assert.deepEqual(await bodies(eu), [1, 4]);
    assert.deepEqual(await bodies(large), [2, 3, 4]);
  });

  it("with a correlation filter gets what is equal", async () => {
    const { sender, red } = await topic({ red: [{ name: "r", correlation: { label: "red", properties: { n: 3 } } }] });
    await sender.sendMessages([{ body: 1, subject: "red", applicationProperties: { n: 3 } }, { body: 2, subject: "red" }, { body: 3, applicationProperties: { n: 3 } }]);
    assert.deepEqual(await bodies(red), [1]);
  });

  it("with an action gets a copy that was changed", async () => {
    const { sender, s } = await topic({ s: [rule("r", "n = 1", "SET sys.Label = 'changed'; SET n = n + 1; SET added = 'x'; REMOVE old")] });
    await sender.sendMessages({ body: { deep: [1] }, contentType: "application/json", subject: "before", applicationProperties: { n: 1, old: true, kept: "k" } });
    const message = await one(s);
    assert.equal(message.subject, "changed");
    assert.deepEqual(message.applicationProperties, { n: 2, added: "x", kept: "k", RuleName: "r" });
    assert.deepEqual(message.body, { deep: [1] });
    assert.equal(message.contentType, "application/json");
  });

  it("has rules that are listed, added and removed over AMQP", async () => {
    const { name, sender, s } = await topic({ s: null });
    const rules = client.createRuleManager(name, "s");
    const list = async () => { const found = []; for await (const each of rules.listRules()) found.push(each); return found; };
    assert.deepEqual((await list()).map((each) => each.name), ["$Default"]);
    await rules.deleteRule("$Default");
    await rules.createRule("big", { sqlExpression: "amount > 10" }, { sqlExpression: "SET big = 1" });
    await rules.createRule("blue", { subject: "blue", applicationProperties: { n: 1 } });
    const [big, blue] = await list();
    assert.equal(big.filter.sqlExpression, "amount > 10");
    assert.equal(big.action.sqlExpression, "SET big = 1");
    assert.equal(blue.filter.subject, "blue");
    assert.deepEqual(blue.filter.applicationProperties, { n: 1 });
    assert.equal((await refusal(rules.createRule("big", { sqlExpression: "1=1" }))).code, "MessagingEntityAlreadyExists");
    assert.equal((await refusal(rules.deleteRule("none"))).code, "MessagingEntityNotFound");
    assert.match((await refusal(rules.createRule("wrong", { sqlExpression: "amount >" }))).message, /at character/);
    await sender.sendMessages([{ body: 1, applicationProperties: { amount: 11 } }, { body: 2 }, { body: 3, subject: "blue", applicationProperties: { n: 1 } }]);
    assert.deepEqual(await bodies(s), [1, 3]);
  });

  it("of which a rule fails has the message as a dead letter", async () => {
    const { name, sender } = await topic({ s: [rule("r", "1 / n = 1")] });
    await sender.sendMessages({ body: 1, applicationProperties: { n: 0 } });
    const letter = await one(client.createReceiver(name, "s", { subQueueType: "deadLetter" }));
    assert.match(letter.deadLetterErrorDescription, /r|zero/);
  });

  it("gets what was scheduled when its time has come, by the rules of then", async () => {
    const { name, sender, s } = await topic({ s: [rule("r", "n = 1")] });
    const [, cancelled] = await sender.scheduleMessages([{ body: 1, applicationProperties: { n: 1 } }, { body: 2, applicationProperties: { n: 1 } }], new Date(Date.now() + 1500));
    await sender.cancelScheduledMessages(cancelled);
    await baton.make("subscription", `${name}/Subscriptions/late`);
    assert.equal(await one(s, 300), undefined);
    assert.equal((await one(s)).body, 1);
    assert.equal((await one(client.createReceiver(name, "late"))).body, 1);
    assert.equal(await one(s, 300), undefined);
  });
});

describe("what cannot be done with a topic", () => {
  it("is to receive from it, or to send to its subscription", async () => {
    const { name } = await topic({ s: null });
    assert.match((await refusal(one(client.createReceiver(name)))).message, /is a topic/);
    assert.match((await refusal(client.createSender(`${name}/Subscriptions/s`).sendMessages({ body: 1 }))).message, /queues and topics/);
    assert.equal((await refusal(one(client.createReceiver(name, "none")))).code, "MessagingEntityNotFound");
  });
});

const workflow = (id, queue) => `
workflow_id: ${id}
nodes:
  start: {type: start, next: [work]}
  work: {type: task, handler: H, queue: ${queue}, next: [end]}
  end: {type: end}
`;
const submit = async (id, queue) => {
  await baton.http("POST", "/workflows", workflow(id, queue), "application/yaml");
  return baton.http("POST", "/jobs", { workflow_id: id, input_data: {} });
};
const entity = (path) => baton.http("GET", `/bus/entities/${encodeURIComponent(path)}`);

describe("the topic of jobs", () => {
  it("has a subscription for each pool whose worker came", async () => {
    const job = await submit("made", "pool-1");
    const receiver = client.createReceiver("worker-jobs", "worker-pool-1");
    assert.equal((await one(receiver)).body.job_id, job.job_id);
    assert.deepEqual((await entity("worker-jobs/Subscriptions/worker-pool-1")).rules.map((each) => each.sql.expression), ["WorkerId = 'pool-1'"]);
  });

  it("gives the jobs of a pool to a subscription with its rule, whatever its name", async () => {
    await baton.make("subscription", "worker-jobs/Subscriptions/whatever", { rules: [rule("r", "WorkerId = 'pool-2'")] });
    const job = await submit("named", "pool-2");
    const receiver = client.createReceiver("worker-jobs", "whatever");
    const message = await one(receiver);
    assert.equal(message.body.job_id, job.job_id);
    await receiver.renewMessageLock(message);
    const rules = client.createRuleManager("worker-jobs", "whatever");
    for await (const each of rules.listRules()) assert.equal(each.filter.sqlExpression, "WorkerId = 'pool-2'");
    await receiver.completeMessage(message);
  });

  it("refuses receivers of another rule, and all senders", async () => {
    await baton.make("subscription", "worker-jobs/Subscriptions/all");
    assert.match((await refusal(one(client.createReceiver("worker-jobs", "all")))).message, /WorkerId = /);
    assert.match((await refusal(client.createSender("worker-jobs").sendMessages({ body: 1 }))).message, /nobody else sends/);
    const rules = client.createRuleManager("worker-jobs", "all");
    await rules.deleteRule("$Default");
    await rules.createRule("pool", { sqlExpression: "WorkerId = 'pool-3'" });
    const job = await submit("fixed", "pool-3");
    assert.equal((await one(client.createReceiver("worker-jobs", "all"))).body.job_id, job.job_id);
  });
});

describe("baton's own topics", () => {
  it("take a result that was scheduled when its time has come", async () => {
    const job = await submit("later", "pool-4");
    const message = await one(client.createReceiver("pool-4"));
    const sender = client.createSender("worker-results");
    const result = { body: { task_id: message.body.task_id, status: "completed" } };
    await sender.scheduleMessages(result, new Date(Date.now() + 1000));
    await sender.sendMessages({ ...result, messageId: "twice", scheduledEnqueueTimeUtc: new Date(Date.now() + 1200) });
    assert.equal((await baton.http("GET", `/jobs/${job.job_id}`)).status, "RUNNING");
    assert.equal((await baton.http("GET", `/jobs/${job.job_id}?wait_ms=8000`)).status, "COMPLETED");
    await until("the end of both messages", async () => (await entity("worker-results/Subscriptions/orchestrator")).counts.active === 0);
  });

  it("keep what can never be taken as a dead letter", async () => {
    const sender = client.createSender("worker-results");
    await sender.scheduleMessages({ body: { task_id: "nobody_knows_0", status: "completed" } }, new Date(Date.now() + 500));
    const letter = await one(client.createReceiver("worker-results", "orchestrator", { subQueueType: "deadLetter" }), 8000);
    assert.match(letter.deadLetterErrorDescription, /no task/);
  });

  it("give copies to the subscriptions of others", async () => {
    await baton.make("subscription", "worker-results/Subscriptions/audit", { rules: [rule("r", "MessageType = 'worker-result'")] });
    const job = await submit("audited", "pool-5");
    const message = await one(client.createReceiver("pool-5"));
    await new Promise((resolve) => setTimeout(resolve, 2500));  // it is noticed within a second or two
    const sender = client.createSender("worker-results");
    await sender.sendMessages({ body: { task_id: message.body.task_id, status: "completed" }, applicationProperties: { MessageType: "worker-result" } });
    assert.equal((await baton.http("GET", `/jobs/${job.job_id}`)).status, "COMPLETED");
    const copy = await one(client.createReceiver("worker-results", "audit"));
    assert.equal(copy.body.task_id, message.body.task_id);
    await until("baton's own copy to go", async () => (await entity("worker-results/Subscriptions/orchestrator")).counts.active === 0);
    assert.equal((await entity("worker-results/Subscriptions/orchestrator")).counts.dead, 1);  // that of before
  });

  it("are received by nobody else", async () => {
    const own = client.createReceiver("worker-results", "orchestrator");
    assert.match((await refusal(own.receiveDeferredMessages(Long.ONE))).message, /baton itself/);
    assert.deepEqual(await own.peekMessages(1), []);
    const error = await refusal(one(client.createReceiver("worker-results", "orchestrator")));
    assert.match(error.message, /baton itself/);
  });
});
