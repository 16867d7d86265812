// A site as it was built for Azure: an external scheduler that writes rows and sends messages, external workers that receive
// jobs and send results. What they speak is handed in, see site_buses.mjs.
import assert from "node:assert/strict";
import { until as untilAsked } from "./baton.mjs";

// Each look at the tables holds up the worker, which is in this process.
const until = (what, condition) => untilAsked(what, async () => await condition() || new Promise((resolve) => setTimeout(() => resolve(false), 100)));

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
      - {name: check, worker_id: pool, function: Test-Mailbox, params: {Id: "{{Id}}"}, retry: {max_retries: 2, interval: 1h}, on_failure: undo}
rollbacks:
  undo:
    - {name: remove, worker_id: pool, function: Remove-Mailbox, params: {Upn: "{{Upn}}"}}
`;

// What a worker's functions do, and how often and when they did it.
class Worker {
  times = new Map();  // of each call, in milliseconds
  polls = new Map();

  constructor(bus, pool) {
    this.receiving = bus.receive("worker-jobs", `worker-${pool}`, async (body, properties) => {
      assert.equal(properties.WorkerId, pool);
      assert.equal(properties.FunctionName, body.functionName);
      await bus.send("worker-results", this.result(body), { MessageType: "worker-result" });
    });
  }

  async close() { await (await this.receiving).close(); }

  result({ jobId, functionName, parameters, correlationData }) {
    const call = `${functionName} ${Object.values(parameters)}`;
    this.times.set(call, [...(this.times.get(call) ?? []), Date.now()]);
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

  count(call) { return this.times.get(call)?.length ?? 0; }
}

const now = () => new Date().toISOString();

class Scheduler {
  retries = new Map();  // when the retry of a step is due: "ID COUNT" -> milliseconds

  constructor(baton, bus) { Object.assign(this, { baton, bus }); }

  message(messageType, more) {
    return ["orchestrator-events", { messageType, runbookName: "move", runbookVersion: 1, batchId: this.batch, ...more }, { MessageType: messageType }];
  }
  say(messageType, more = {}) { return this.bus.send(...this.message(messageType, more)); }

  // A step that failed and waits is tried again a second later, because of this message and nothing else: of itself it would wait for an hour.
  async scheduleRetries() {
    const waiting = this.baton.sql(`SELECT id, retry_count FROM step_executions WHERE status='pending' AND retry_after IS NOT NULL AND batch_member_id IN (${this.members})`);
    for (const [id, count] of waiting) {
      if (this.retries.has(`${id} ${count}`)) continue;
      const due = Date.now() + 1000;
      this.retries.set(`${id} ${count}`, due);
      await this.bus.sendAt(new Date(due), ...this.message("retry-check", { stepExecutionId: id, isInitStep: false, retryCount: count }));
    }
  }

  async detect(keys) {
    this.runbook ??= this.baton.insert("runbooks", {
      name: "move", version: 1, yaml_content: runbook, data_table_name: "runbook_move_v1", is_active: 1,
      overdue_behavior: "rerun", ignore_overdue_applied: 0, rerun_init: 0, created_at: now(),
    });
    this.batch = this.baton.insert("batches", { runbook_id: this.runbook, batch_start_time: now(), status: "detected", detected_at: now() });
    this.members = this.join(...keys);
    this.phase = this.baton.insert("phase_executions", {
      batch_id: this.batch, phase_name: "cut-over", offset_minutes: 0, due_at: now(), runbook_version: 1, status: "pending",
    });
    await this.say("batch-init", { batchStartTime: now(), memberCount: keys.length });
  }

  join(...keys) {
    return this.baton.insertAll("batch_members", keys.map((key) =>
      ({ batch_id: this.batch, member_key: key, status: "active", added_at: now(), data_json: JSON.stringify({ Upn: key }) })));
  }

  status() { return this.baton.sql(`SELECT status FROM batches WHERE id=${this.batch}`)[0][0]; }
  stepId(member, name) { return this.baton.sql(`SELECT id FROM step_executions WHERE batch_member_id=${member} AND step_name='${name}'`)[0][0]; }
  steps(member) {
    return Object.fromEntries(this.baton.sql(`SELECT step_name, status FROM step_executions WHERE batch_member_id=${member}`));
  }
  polling() { return this.baton.sql(`SELECT id, step_name, poll_count FROM step_executions WHERE status='polling'`); }
}

export async function waves(baton, bus) {
  const worker = new Worker(bus, "pool");
  const scheduler = new Scheduler(baton, bus);
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
  const withRetries = (condition) => async () => {
    await scheduler.scheduleRetries();
    return condition();
  };
  await until("the second try of the flaky one", withRetries(() => scheduler.steps(flaky).check === "succeeded"));
  await until("the rollback of the broken one", withRetries(() => worker.count("Remove-Mailbox broken") === 1));
  await until("the end of the broken one", () => scheduler.steps(broken).check === "rolled_back");
  assert.equal(worker.count("Test-Mailbox id-broken"), 3);
  assert.equal(worker.count("Test-Mailbox id-plain"), 1);
  // No retry was before its message.
  for (const [member, call, tries] of [[flaky, "Test-Mailbox id-flaky", 2], [broken, "Test-Mailbox id-broken", 3]]) {
    const id = scheduler.stepId(member, "check"), times = worker.times.get(call);
    assert.equal(times.length, tries);
    for (let retry = 1; retry < tries; retry++) assert.ok(times[retry] >= scheduler.retries.get(`${id} ${retry}`), `${call}: ${retry}`);
  }
  assert.equal(scheduler.retries.size, 3);
  for (const key of ["plain", "flaky", "broken"]) assert.equal(worker.count(`New-Mailbox ${key}`), 1);

  await until("the batch's end", () => ["completed", "failed"].includes(scheduler.status()));
  await worker.close();
}

export async function lateAndLeaver(baton, bus) {
  const worker = new Worker(bus, "pool");
  const scheduler = new Scheduler(baton, bus);
  scheduler.runbook = baton.sql("SELECT id FROM runbooks")[0][0];
  await scheduler.detect(["early", "leaver"]);
  await until("the init step", () => scheduler.status() === "active");
  await scheduler.say("phase-due", { phaseExecutionId: scheduler.phase, phaseName: "cut-over", offsetMinutes: 0, dueAt: now(), memberIds: scheduler.members });
  await until("the moves", () => scheduler.polling().length === 2);
  const leaver = scheduler.members[1];
  baton.sql(`UPDATE batch_members SET status='removed', removed_at='${now()}' WHERE id=${leaver}`);
  await scheduler.say("member-removed", { batchMemberId: leaver, memberKey: "leaver" });
  const [late] = scheduler.join("late");
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
  await worker.close();
}
