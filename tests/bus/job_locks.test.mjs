// Locks of jobs hold over kill -9 of the server: who received a job before it renews and settles it after it, by the lock token alone.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { Baton, refusal, until } from "./baton.mjs";

const workflow = (id, queue) => `workflow_id: ${id}\nnodes:\n  start: {type: start, next: [work]}\n  work: {type: task, handler: H, queue: ${queue}, retry: {max_retries: 0}, next: [end]}\n  end: {type: end}\n`;
const fanned = `
workflow_id: fanned
inputs:
  names: {type: array, required: true}
nodes:
  start: {type: start, next: [split]}
  split: {type: fan_out, source: "{{ inputs.names }}", task: {handler: H, queue: items}, next: [end]}
  end: {type: end}
`;
const runbook = `
name: lone
data_source: {type: csv, connection: NOWHERE_CSV, interval: 5m, primary_key: Upn, batch_time_column: Day}
init:
  - {name: group, worker_id: lone-pool, function: New-Group, params: {Name: "g-{{_batch_id}}"}}
phases:
  - name: go
    offset: T-0
    steps:
      - {name: move, worker_id: lone-pool, function: Move, params: {Upn: "{{Upn}}"}}
`;

const one = async (receiver, wait = 5000) => (await receiver.receiveMessages(1, { maxWaitTimeInMs: wait }))[0];
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const locked = { maxAutoLockRenewalDurationInMs: 0 };

let baton;
const submit = (id, input = {}) => baton.http("POST", "/jobs", { workflow_id: id, input_data: input });
const node = (job, id = "work") => baton.http("GET", `/jobs/${job.job_id}/nodes/${id}`);
const ended = (job) => until("the job's end", async () => {
  const view = await baton.http("GET", `/jobs/${job.job_id}`);
  return ["COMPLETED", "FAILED", "CANCELLED"].includes(view.status) && view;
});
const answer = (message) => baton.client().createSender("worker-results").sendMessages({ body: { task_id: message.body.task_id, status: "completed" } });
async function restart() {
  await baton.kill();
  await baton.start(...baton.options);
}
// Of a client that knows nothing of before.
const afterwards = (queue) => baton.client(undefined, 5).createReceiver(...[queue].flat(), locked);

describe("the lock of a job that was received before a kill", () => {
  before(async () => {
    baton = await Baton.start("--bus-lock-seconds", "20", "--lease-seconds", "2", "--scheduler", "off");
    for (const [id, queue] of [["held", "held"], ["other", "other"]]) await baton.http("POST", "/workflows", workflow(id, queue), "application/yaml");
    await baton.http("POST", "/workflows", fanned, "application/yaml");
  });
  after(() => baton.stop());

  const receive = async (queue) => {
    const message = await one(baton.client().createReceiver(...[queue].flat(), locked));
    assert.ok(message, "nothing was received");
    return message;
  };

  it("is renewed, and the job completed and answered", async () => {
    const job = await submit("held");
    const message = await receive("held");
    const before = (await node(job)).lease_until;
    await restart();
    await sleep(20);
    const late = afterwards("held");
    const until = await late.renewMessageLock(message);
    assert.ok(until.getTime() > new Date(before).getTime(), `${until} ${before}`);
    assert.equal((await node(job)).lease_until, until.toISOString());
    await late.completeMessage(message);
    const kept = (await node(job)).lease_until;
    assert.ok(new Date(kept) > Date.now() + 60_000, kept);
    assert.equal(await one(late, 500), undefined);
    await answer(message);
    assert.equal((await ended(job)).status, "COMPLETED");
  });

  it("is settled by its first word", async () => {
    const job = await submit("held");
    const message = await receive("held");
    await restart();
    const late = afterwards("held");
    await late.completeMessage(message);
    await late.completeMessage(message);  // whose answer might have been lost
    assert.equal((await refusal(late.abandonMessage(message))).code, "MessageLockLost");
    assert.equal((await refusal(late.deadLetterMessage(message))).code, "MessageLockLost");
    assert.equal((await node(job)).status, "RUNNING");
    await answer(message);
    await ended(job);
  });

  it("is completed after the result", async () => {
    const job = await submit("held");
    const message = await receive("held");
    await answer(message);
    await ended(job);
    await restart();
    const late = afterwards("held");
    await late.completeMessage(message);
    assert.equal((await refusal(late.renewMessageLock(message))).code, "MessageLockLost");
  });

  it("is abandoned, and the next delivery has another lock", async () => {
    const job = await submit("held");
    const first = await receive("held");
    await restart();
    const late = afterwards("held");
    await late.abandonMessage(first);
    const second = await one(late);
    assert.equal(second.body.task_id, first.body.task_id);
    assert.equal(second.deliveryCount, 1);
    assert.notEqual(second.lockToken, first.lockToken);
    // Nor after another kill, when neither is remembered.
    for (const round of [1, 2]) {
      const { lease_until: until } = await node(job);
      const again = afterwards("held");
      for (const refused of [() => again.renewMessageLock(first), () => again.completeMessage(first), () => again.abandonMessage(first), () => again.deadLetterMessage(first)])
        assert.equal((await refusal(refused())).code, "MessageLockLost");
      assert.equal((await node(job)).lease_until, until);
      if (round === 1) await restart();
    }
    await afterwards("held").completeMessage(second);
    await answer(second);
    assert.equal((await ended(job)).status, "COMPLETED");
  });

  it("is given up for a reason", async () => {
    const job = await submit("held");
    const message = await receive("held");
    await restart();
    await afterwards("held").deadLetterMessage(message, { deadLetterReason: "no such file" });
    assert.match(JSON.stringify(await ended(job)), /no such file/);
  });

  it("is that of one item of many", async () => {
    const job = await submit("fanned", { names: ["a", "b", "c"] });
    const receiver = baton.client().createReceiver("items", locked);
    const messages = [];
    while (messages.length < 3) messages.push(...await receiver.receiveMessages(3, { maxWaitTimeInMs: 5000 }));
    await restart();
    const late = afterwards("items");
    await late.completeMessage(messages[1]);
    await late.abandonMessage(messages[2]);
    const again = await one(late);
    assert.equal(again.body.task_id, messages[2].body.task_id);
    await late.completeMessage(again);
    assert.ok(await late.renewMessageLock(messages[0]) > new Date());
    await late.completeMessage(messages[0]);
    for (const message of messages) await answer(message);
    assert.equal((await ended(job)).status, "COMPLETED");
  });

  it("is that of a runbook's job", async () => {
    await baton.http("POST", "/runbooks", runbook, "application/yaml");
    const { id } = await baton.http("POST", "/runbooks/lone/batches", "Upn\nada\n", "text/csv");
    const pool = ["worker-jobs", "worker-lone-pool"];
    const first = await receive(pool);
    assert.equal(first.body.functionName, "New-Group");
    await restart();
    const late = afterwards(pool);
    assert.ok(await late.renewMessageLock(first) > new Date(Date.now() + 15_000));
    await late.abandonMessage(first);
    const second = await one(late);
    assert.equal(second.messageId, first.messageId);
    await restart();
    const again = afterwards(pool);
    assert.equal((await refusal(again.completeMessage(first))).code, "MessageLockLost");
    await again.completeMessage(second);
    assert.equal(await one(again, 500), undefined);
    const { jobId, correlationData } = second.body;
    await baton.client().createSender("worker-results").sendMessages({ body: { jobId, status: "Success", resultType: "Object", result: {}, correlationData } });
    await until("the end of the init step", async () => (await baton.http("GET", `/batches/${id}`)).status === "active");
  });

  it("is of its own queue only", async () => {
    const job = await submit("held");
    const message = await receive("held");
    await restart();
    for (const queue of ["other", "items", ["worker-jobs", "worker-lone-pool"]])
      assert.equal((await refusal(afterwards(queue).abandonMessage(message))).code, "MessageLockLost");
    assert.equal((await node(job)).status, "RUNNING");
    await afterwards("held").completeMessage(message);
    await answer(message);
    await ended(job);
  });
});

it("the lock of a job ends while the server is away, and the next delivery is another's", async () => {
  baton = await Baton.start("--bus-lock-seconds", "2", "--lease-seconds", "1");
  try {
    await baton.http("POST", "/workflows", workflow("held", "held"), "application/yaml");
    const job = await submit("held");
    const first = await one(baton.client().createReceiver("held", locked));
    await baton.kill();
    await sleep(2500);
    await baton.start(...baton.options);
    const late = afterwards("held");
    const second = await one(late, 10_000);
    assert.equal(second.body.task_id, first.body.task_id);
    for (const refused of [() => late.renewMessageLock(first), () => late.completeMessage(first)]) assert.equal((await refusal(refused())).code, "MessageLockLost");
    await late.completeMessage(second);
    await answer(second);
    assert.equal((await ended(job)).status, "COMPLETED");
  } finally { await baton.stop(); }
});

it("the lock of another tenant's job is nobody else's", async () => {
  baton = new Baton();
  const key = (...options) => JSON.parse(baton.command("token", "create", "--json", ...options));
  const client = ({ token_id: id, shared_access_key: secret }) => baton.client(baton.connectionString(id, secret), 5);
  baton.token = key("--role", "admin").token;
  await baton.start();
  try {
    await baton.http("POST", "/workflows", workflow("held", "functionapp-tasks"), "application/yaml");
    const job = await submit("held");
    const [own, stranger] = [key("--role", "worker", "--bus"), key("--role", "worker", "--bus", "--tenant", "acme")];
    const message = await one(client(own).createReceiver("functionapp-tasks", locked));
    await restart();
    const theirs = client(stranger).createReceiver("functionapp-tasks", locked);
    for (const refused of [() => theirs.renewMessageLock(message), () => theirs.completeMessage(message), () => theirs.abandonMessage(message)])
      assert.equal((await refusal(refused())).code, "MessageLockLost");
    assert.equal((await node(job)).status, "RUNNING");
    await client(own).createReceiver("functionapp-tasks", locked).completeMessage(message);
  } finally { await baton.stop(); }
});
