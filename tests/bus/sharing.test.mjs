// Workers of all three kinds on one pool of a runbook, and on one queue of a workflow: over HTTP, `baton worker`, and over AMQP with the SDK of Azure.
import assert from "node:assert/strict";
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { Baton, until } from "./baton.mjs";

const count = 60, least = 6;  // jobs, and the share that each worker has at the least
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const work = () => sleep(20);

const workflow = "workflow_id: shared\nnodes:\n  start: {type: start, next: [t]}\n  t: {type: task, handler: Work, queue: shared, next: [end]}\n  end: {type: end}\n";

const runbook = `
name: shared
data_source: {type: csv, connection: WAVES_CSV, interval: 5m, primary_key: Upn, batch_time_column: MigrationDate}
phases:
  - name: only
    offset: T-0
    steps:
      - {name: work, worker_id: pool, function: Work, params: {Upn: "{{Upn}}"}}
`;

let baton;
before(async () => { baton = await Baton.start("--scheduler", "off"); });
after(() => baton.stop());

// Three workers that take one job at a time and know which ones they had, until they are closed.
async function threeWorkers(queue, receiver) {
  const had = { http: [], agent: [], amqp: [] }, errors = [];
  let isClosed = false;

  const http = (async () => {
    while (!isClosed) {
      const { jobs } = await baton.http("POST", `/workers/${queue}/jobs:poll`, { max: 1, wait_ms: 500, worker: `http-${queue}` });
      for (const { task_id, jobId, lease } of jobs) {
        had.http.push(task_id ?? jobId);
        await work();
        await baton.http("POST", "/callbacks/task-results", { results: [{ task_id: task_id ?? jobId, status: "completed", lease }] });
      }
    }
  })();

  const folder = join(baton.data, `functions-${queue}`), list = join(baton.data, `agent-${queue}`);
  mkdirSync(folder);
  writeFileSync(list, "");
  writeFileSync(join(folder, "Work"), `#!/bin/sh\necho "$BATON_TASK_ID" >> '${list}'\nsleep 0.02\n`);
  chmodSync(join(folder, "Work"), 0o755);
  const agent = baton.worker("--queue", queue, "--functions", folder, "--concurrency", "1", "--name", `agent-${queue}`);

  const results = baton.client().createSender("worker-results");
  const subscription = receiver.subscribe({
    async processMessage({ body: { task_id, jobId, correlationData } }) {
      had.amqp.push(task_id ?? jobId);
      await work();
      await results.sendMessages({ body: task_id ? { task_id, status: "completed" } : { jobId, status: "Success", correlationData } });
    },
    async processError({ error }) { errors.push(error); },
  }, { maxConcurrentCalls: 1 });

  await until("all three", async () => (await baton.http("GET", "/workers")).workers.filter(({ queues }) => queues.includes(queue)).length === 3);
  return {
    async close() {
      isClosed = true;
      await Promise.all([http, agent.stop(), subscription.close()]);
      assert.deepEqual(errors, []);
      had.agent = readFileSync(list, "utf8").trim().split("\n");
      return had;
    },
  };
}

function assertShared(had) {
  const ids = Object.values(had).flat(), shares = JSON.stringify(Object.fromEntries(Object.entries(had).map(([who, { length }]) => [who, length])));
  assert.equal(ids.length, count, shares);
  assert.equal(new Set(ids).size, count, shares);
  for (const [who, { length }] of Object.entries(had)) assert.ok(length >= least, `${who}: ${shares}`);
}

describe("workers of HTTP, of baton worker and of AMQP", () => {
  it("share the jobs of one pool of a runbook, and do each once", async () => {
    const now = new Date().toISOString();
    const runbookId = baton.insert("runbooks", { name: "shared", version: 1, yaml_content: runbook, data_table_name: "runbook_shared_v1", is_active: 1, overdue_behavior: "rerun",
      ignore_overdue_applied: 0, rerun_init: 0, created_at: now });
    const batchId = baton.insert("batches", { runbook_id: runbookId, batch_start_time: now, status: "active", detected_at: now });
    baton.sql("INSERT INTO batch_members (batch_id, member_key, status, added_at, data_json) " +
      `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count}) SELECT ${batchId}, 'm' || i, 'active', '${now}', '{"Upn":"m' || i || '"}' FROM n`);
    const phaseExecutionId = baton.insert("phase_executions", { batch_id: batchId, phase_name: "only", offset_minutes: 0, due_at: now, runbook_version: 1, status: "pending" });
    const workers = await threeWorkers("pool", baton.client().createReceiver("worker-jobs", "worker-pool"));
    await baton.client().createSender("orchestrator-events").sendMessages({ body: { messageType: "phase-due", runbookName: "shared", runbookVersion: 1, batchId, phaseExecutionId,
      phaseName: "only", offsetMinutes: 0, dueAt: now } });
    await until("the batch's end", async () => (await baton.http("GET", `/batches/${batchId}`)).status === "completed", 30);
    assertShared(await workers.close());
    assert.deepEqual(baton.sql("SELECT status, retry_count, count(*) FROM step_executions GROUP BY status, retry_count"), [["succeeded", 0, count]]);
  });

  it("share the tasks of one queue of a workflow, and do each once", async () => {
    await baton.http("POST", "/workflows", workflow, "application/yaml");
    const workers = await threeWorkers("shared", baton.client().createReceiver("shared"));
    const jobs = await Promise.all(Array.from({ length: count }, () => baton.http("POST", "/jobs", { workflow_id: "shared", input_data: {} })));
    for (const { job_id } of jobs) assert.equal((await baton.http("GET", `/jobs/${job_id}?wait_ms=20000`)).status, "COMPLETED");
    assertShared(await workers.close());
    const results = baton.sql("SELECT job_id, count(*) FROM dag_task_results GROUP BY job_id");
    assert.equal(results.length, count);
    for (const [job, all] of results) assert.equal(all, 1, job);
  });
});
