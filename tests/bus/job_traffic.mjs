// Jobs that flow both ways while something is killed: tasks of workflows that are submitted over HTTP, and runbooks of an external scheduler that writes
// rows and sends events. Workers take them over AMQP and send results. What they speak is handed in, as for a site.
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { until } from "./baton.mjs";
import { Ledger } from "./ledger.mjs";
import { sleep } from "./traffic.mjs";

const workflow = "workflow_id: audit\nnodes:\n  start: {type: start, next: [a]}\n" +
  "  a: {type: task, handler: H, queue: tasks, next: [b]}\n  b: {type: task, handler: H, queue: tasks, next: [end]}\n  end: {type: end}\n";
const nodesPerJob = 2;

const runbook = `
name: audit
data_source: {type: csv, connection: WAVES_CSV, interval: 5m, primary_key: Upn, batch_time_column: MigrationDate}
init:
  - {name: group, worker_id: pool, function: New-Group, params: {Name: "g-{{_batch_id}}"}}
phases:
  - name: cut-over
    offset: T-0
    steps:
      - {name: create, worker_id: pool, function: New-Mailbox, params: {Upn: "{{Upn}}"}}
      - {name: check, worker_id: pool, function: Test-Mailbox, params: {Upn: "{{Upn}}"}}
`;
const membersPerBatch = 4, stepsPerMember = 2;

const now = () => new Date().toISOString();
const run = promisify(execFile);

// As another program does beside the server, and without holding up whoever else runs in this process.
async function sql(baton, statement) {
  const program = "import json,sqlite3,sys\nc=sqlite3.connect(sys.argv[1],timeout=30)\nr=c.execute(sys.argv[2]).fetchall()\nc.commit()\nprint(json.dumps(r))";
  return JSON.parse((await run("python3", ["-c", program, join(baton.data, "baton.db"), statement])).stdout);
}

async function insert(baton, table, row) {
  const value = (cell) => typeof cell === "string" ? `'${cell.replaceAll("'", "''")}'` : `${Number(cell)}`;
  return (await sql(baton, `INSERT INTO ${table} (${Object.keys(row)}) VALUES (${Object.values(row).map(value)}) RETURNING id`))[0][0];
}

export class JobTraffic {
  results = { sent: 0, accepted: 0 };
  events = { accepted: 0 };
  jobs = [];
  batches = [];
  isStopped = false;

  // `bus.send` ends when the message was accepted, however often it had to be sent. Without `hasLocks` it is a broker elsewhere.
  constructor(baton, bus, jobsCount, { hasLocks = true, pause = 5 } = {}) {
    Object.assign(this, { baton, bus, jobsCount, pause, ledger: new Ledger({ isOfJobs: true, hasLocks }) });
  }

  async start() {
    await this.baton.http("POST", "/workflows", workflow, "application/yaml");
    this.workers = [
      this.bus.receive("", "", (body, _, seen) => this.work(body.task_id, { task_id: body.task_id, status: "completed" }, seen), "tasks"),
      this.bus.receive("worker-jobs", "worker-pool", ({ jobId, correlationData }, _, seen) =>
        this.work(jobId, { jobId, correlationData, status: "Success", resultType: "Object", result: {}, durationMs: 1 }, seen)),
    ];
    this.submitting = this.submit();
    this.scheduling = this.schedule();
    for (const each of [this.submitting, this.scheduling]) each.catch(() => {});  // it is told by finish()
    return this;
  }

  async work(id, result, seen) {
    const entry = this.ledger.received(id, seen);
    await sleep(Math.random() * 20);
    this.ledger.ask(entry);
    this.results.sent++;
    await this.bus.send("worker-results", result, { MessageType: "worker-result" });
    this.results.accepted++;
    this.ledger.ended(entry, "completed");
  }

  // With a key of its own, so that a job may be submitted again by who heard no answer.
  async submit() {
    while (this.jobs.length < this.jobsCount) {
      const body = { workflow_id: "audit", input_data: {}, idempotency_key: `job-${this.jobs.length}` };
      const job = await this.baton.http("POST", "/jobs", body).catch(() => sleep(50));
      if (job) this.jobs.push(job.job_id);
      await sleep(this.pause);
    }
  }

  async say(messageType, more) {
    await this.bus.send("orchestrator-events", { messageType, runbookName: "audit", runbookVersion: 1, ...more }, { MessageType: messageType });
    this.events.accepted++;
  }

  // One batch after the other, at least one. Rows are written when the server is there and when it is not.
  async schedule() {
    const runbookId = await insert(this.baton, "runbooks", {
      name: "audit", version: 1, yaml_content: runbook, data_table_name: "runbook_audit_v1", is_active: 1, overdue_behavior: "rerun", ignore_overdue_applied: 0,
      rerun_init: 0, created_at: now(),
    });
    do {
      const batchId = await insert(this.baton, "batches", { runbook_id: runbookId, batch_start_time: now(), status: "detected", detected_at: now() });
      const memberIds = [];
      for (let i = 0; i < membersPerBatch; i++)
        memberIds.push(await insert(this.baton, "batch_members", { batch_id: batchId, member_key: `m${i}`, status: "active", added_at: now(), data_json: JSON.stringify({ Upn: `m${i}` }) }));
      const phaseExecutionId = await insert(this.baton, "phase_executions", {
        batch_id: batchId, phase_name: "cut-over", offset_minutes: 0, due_at: now(), runbook_version: 1, status: "pending",
      });
      await this.say("batch-init", { batchId, batchStartTime: now(), memberCount: memberIds.length });
      await this.wait(`batch ${batchId} is active`, async () => (await this.status(batchId)) === "active");
      await this.say("phase-due", { batchId, phaseExecutionId, phaseName: "cut-over", offsetMinutes: 0, dueAt: now(), memberIds });
      await this.wait(`the end of batch ${batchId}`, async () => (await this.status(batchId)) === "completed");
      this.batches.push(batchId);
    } while (!this.isStopped);
  }

  wait(what, condition) { return until(what, async () => await condition() || sleep(200).then(() => false), 90); }
  async status(batchId) { return (await sql(this.baton, `SELECT status FROM batches WHERE id=${batchId}`))[0][0]; }

  // All jobs and batches have ended; what is in the tables is what had to be done, and once.
  async finish() {
    this.isStopped = true;
    await Promise.all([this.submitting, this.scheduling]);
    const open = new Set(this.jobs);
    await this.wait("the end of all jobs", async () => {
      for (const id of open) {
        if ((await this.baton.http("GET", `/jobs/${id}`)).status !== "COMPLETED") return false;
        open.delete(id);
      }
      return true;
    });
    await sleep(500);  // the answers to the last completions
    await this.close();
    const found = this.ledger.verdict();
    await this.checkTables(found.violations);
    Object.assign(found.totals, { jobs: this.jobs.length, batches: this.batches.length, "results accepted": this.results.accepted, "events accepted": this.events.accepted });
    return found;
  }

  async checkTables(violations) {
    if (new Set(this.jobs).size !== this.jobsCount) violations.push(`${this.jobsCount} jobs were submitted, and ${new Set(this.jobs).size} made`);
    const results = await sql(this.baton, "SELECT job_id, node_id, count(*) FROM dag_task_results GROUP BY job_id, node_id");
    if (results.length !== nodesPerJob * this.jobsCount) violations.push(`${results.length} tasks have results, and not ${nodesPerJob * this.jobsCount}`);
    for (const [job, node, count] of results) if (count !== 1) violations.push(`${job} ${node} has ${count} results`);
    const steps = await sql(this.baton, "SELECT batch_member_id, step_name, status, count(*) FROM step_executions GROUP BY batch_member_id, step_name, status");
    const expected = this.batches.length * membersPerBatch * stepsPerMember;
    if (steps.length !== expected) violations.push(`${steps.length} steps were done, and not ${expected}`);
    for (const [member, step, status, count] of steps) if (status !== "succeeded" || count !== 1) violations.push(`step ${step} of member ${member} is ${status}, ${count} times`);
  }

  async close() {
    this.isStopped = true;
    for (const worker of this.workers) await worker.close();
    await this.bus.close();
  }
}
