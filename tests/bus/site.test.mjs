// A site as it was built for Azure: an external scheduler that writes rows and sends messages, external workers that receive
// jobs and send results, all with the real SDK; the built-in scheduler is off.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { Baton, until } from "./baton.mjs";

const runbook = `
name: move
data_source: {type: csv, connection: WAVES_CSV, interval: 5m, primary_key: Upn, batch_time_column: MigrationDate}
init:
  - {name: group, worker_id: pool, function: New-Group, params: {Name: "g-{{_batch_id}}"}}
phases:
  - name: cut-over
    offset: T-0
    steps:
      - {name: create, worker_id: pool, function: New-Mailbox, params: {Upn: "{{Upn}}"}, output_params: {Id: id}}
      - {name: move, worker_id: pool, function: Start-Move, params: {Id: "{{Id}}"}, poll: {interval: 1m, timeout: 1h}}
      - {name: check, worker_id: pool, function: Test-Mailbox, params: {Id: "{{Id}}"}, retry: {max_retries: 2, interval: 1s}, on_failure: undo}
rollbacks:
  undo:
    - {name: remove, worker_id: pool, function: Remove-Mailbox, params: {Upn: "{{Upn}}"}}
`;

// What a worker's functions do, and how often they did it.
class Worker {
  calls = [];
  polls = new Map();

  constructor(client, pool) {
    this.sender = client.createSender("worker-results");
    this.receiver = client.createReceiver("worker-jobs", `worker-${pool}`);
    this.receiver.subscribe({
      processMessage: async (message) => {
        assert.equal(message.applicationProperties.WorkerId, pool);
        assert.equal(message.applicationProperties.FunctionName, message.body.functionName);
        await this.sender.sendMessages({ body: this.result(message.body), applicationProperties: { MessageType: "worker-result" } });
      },
      processError: async () => {},
    }, { maxConcurrentCalls: 4 });
  }

  result({ jobId, functionName, parameters, correlationData }) {
    this.calls.push(`${functionName} ${Object.values(parameters)}`);
    const answer = (status, more) => ({ jobId, status, correlationData, durationMs: 1, ...more });
    if (functionName === "Test-Mailbox" && parameters.Id === "id-broken")
      return answer("Failure", { resultType: "Object", error: { message: "it does not answer" } });
    if (functionName === "Test-Mailbox" && parameters.Id === "id-flaky" && this.count("Test-Mailbox id-flaky") === 1)
      return answer("Failure", { resultType: "Object", error: { message: "once" } });
    if (functionName === "Start-Move") {
      const asked = (this.polls.get(parameters.Id) ?? 0) + 1;
      this.polls.set(parameters.Id, asked);
      return answer("Success", { resultType: "Object", result: { complete: asked > 1 } });
    }
    return answer("Success", { resultType: "Object", result: { id: `id-${parameters.Upn}` } });
  }

  count(call) { return this.calls.filter((each) => each === call).length; }
}

let baton;
before(async () => { baton = await Baton.start("--scheduler", "off"); });
after(() => baton.stop());

const now = () => new Date().toISOString();

class Scheduler {
  constructor(client) { this.sender = client.createSender("orchestrator-events"); }

  say(messageType, more = {}) {
    const body = { messageType, runbookName: "move", runbookVersion: 1, batchId: this.batch, ...more };
    return this.sender.sendMessages({ body, contentType: "application/json", applicationProperties: { MessageType: messageType } });
  }

  async detect(keys) {
    this.runbook ??= baton.insert("runbooks", {
      name: "move", version: 1, yaml_content: runbook, data_table_name: "runbook_move_v1", is_active: 1,
      overdue_behavior: "rerun", ignore_overdue_applied: 0, rerun_init: 0, created_at: now(),
    });
    this.batch = baton.insert("batches", { runbook_id: this.runbook, batch_start_time: now(), status: "detected", detected_at: now() });
    this.members = keys.map((key) => this.join(key));
    this.phase = baton.insert("phase_executions", {
      batch_id: this.batch, phase_name: "cut-over", offset_minutes: 0, due_at: now(), runbook_version: 1, status: "pending",
    });
    await this.say("batch-init", { batchStartTime: now(), memberCount: keys.length });
  }

  join(key) {
    return baton.insert("batch_members", { batch_id: this.batch, member_key: key, status: "active", added_at: now(), data_json: JSON.stringify({ Upn: key }) });
  }

  status() { return baton.sql(`SELECT status FROM batches WHERE id=${this.batch}`)[0][0]; }
  steps(member) {
    return Object.fromEntries(baton.sql(`SELECT step_name, status FROM step_executions WHERE batch_member_id=${member}`));
  }
  polling() { return baton.sql(`SELECT id, step_name, poll_count FROM step_executions WHERE status='polling'`); }
}

describe("a site of Service Bus", () => {
  it("does its waves over our endpoint, with nothing but the connection string changed", async () => {
    const client = baton.client();
    const worker = new Worker(client, "pool");
    const scheduler = new Scheduler(client);
    await scheduler.detect(["plain", "flaky", "broken"]);
    const [plain, flaky, broken] = scheduler.members;
    await until("the init step", () => scheduler.status() === "active");
    assert.equal(worker.count(`New-Group g-${scheduler.batch}`), 1);

    await scheduler.say("phase-due", { phaseExecutionId: scheduler.phase, phaseName: "cut-over", offsetMinutes: 0, dueAt: now(), memberIds: scheduler.members });
    // A move is asked for again when the scheduler says so.
    await until("the moves", () => scheduler.polling().length === 3);
    for (const [id, name, count] of scheduler.polling())
      await scheduler.say("poll-check", { stepExecutionId: id, stepName: name, pollCount: count });
    await until("the end of the plain one", () => scheduler.steps(plain).check === "succeeded");
    await until("the second try of the flaky one", () => scheduler.steps(flaky).check === "succeeded");
    await until("the rollback of the broken one", () => worker.count("Remove-Mailbox broken") === 1);
    await until("the end of the broken one", () => scheduler.steps(broken).check === "rolled_back");
    assert.equal(worker.count("Test-Mailbox id-broken"), 3);
    assert.equal(worker.count("Test-Mailbox id-plain"), 1);
    for (const key of ["plain", "flaky", "broken"]) assert.equal(worker.count(`New-Mailbox ${key}`), 1);

    await until("the batch's end", () => ["completed", "failed"].includes(scheduler.status()));
    await worker.receiver.close();
  });

  it("takes in who comes late, and lets go who leaves", async () => {
    const client = baton.client();
    const worker = new Worker(client, "pool");
    const scheduler = new Scheduler(client);
    scheduler.runbook = baton.sql("SELECT id FROM runbooks")[0][0];
    await scheduler.detect(["early", "leaver"]);
    await until("the init step", () => scheduler.status() === "active");
    await scheduler.say("phase-due", { phaseExecutionId: scheduler.phase, phaseName: "cut-over", offsetMinutes: 0, dueAt: now(), memberIds: scheduler.members });
    await until("the moves", () => scheduler.polling().length === 2);
    const leaver = scheduler.members[1];
    baton.sql(`UPDATE batch_members SET status='removed', removed_at='${now()}' WHERE id=${leaver}`);
    await scheduler.say("member-removed", { batchMemberId: leaver, memberKey: "leaver" });
    const late = scheduler.join("late");
    await scheduler.say("member-added", { batchMemberId: late, memberKey: "late" });
    await until("the late one's first step", () => scheduler.steps(late).create === "succeeded");
    await until("the leaver's end", () => scheduler.steps(leaver).move === "cancelled");
    for (let i = 0; i < 20 && scheduler.polling().length > 0; i++)
      for (const [id, name, count] of scheduler.polling())
        await scheduler.say("poll-check", { stepExecutionId: id, stepName: name, pollCount: count });
    await until("the late one's last step", () => scheduler.steps(late).check === "succeeded");
    await until("the early one's last step", () => scheduler.steps(scheduler.members[0]).check === "succeeded");
    assert.equal(worker.count("New-Mailbox late"), 1);
    assert.equal(worker.count("Test-Mailbox id-leaver"), 0);
    await worker.receiver.close();
  });

  it("shares a pool between workers of HTTP and of AMQP", async () => {
    const client = baton.client();
    await baton.http("POST", "/workflows", "workflow_id: w\nnodes:\n  start: {type: start, next: [t]}\n" +
      "  t: {type: task, handler: H, queue: shared, next: [end]}\n  end: {type: end}\n", "application/yaml");
    const jobs = [];
    for (let i = 0; i < 40; i++) jobs.push(await baton.http("POST", "/jobs", { workflow_id: "w", input_data: {} }));
    const done = { amqp: 0, http: 0 };
    const sender = client.createSender("worker-results");
    const receiver = client.createReceiver("shared");
    const amqp = (async () => {
      for (let i = 0; i < 20; i++)
        for (const message of await receiver.receiveMessages(1, { maxWaitTimeInMs: 5000 })) {
          await receiver.completeMessage(message);
          await sender.sendMessages({ body: { task_id: message.body.task_id, status: "completed" } });
          done.amqp++;
        }
    })();
    const http = (async () => {
      while (done.http < 20)
        for (const job of (await baton.http("POST", "/workers/shared/jobs:poll", { max: 1, wait_ms: 5000, worker: "h" })).jobs) {
          await baton.http("POST", "/callbacks/task-result", { task_id: job.task_id, status: "completed", lease: job.lease });
          done.http++;
        }
    })();
    await Promise.all([amqp, http]);
    assert.deepEqual(done, { amqp: 20, http: 20 });
    for (const job of jobs) assert.equal((await baton.http("GET", `/jobs/${job.job_id}?wait_ms=5000`)).status, "COMPLETED");
  });
});
