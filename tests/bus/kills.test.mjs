// The server is killed while messages flow both ways: nothing that was accepted is lost, nothing is done twice without a reason.
import assert from "node:assert/strict";
import { Baton, until } from "./baton.mjs";
import { after, before, it } from "./testing.mjs";

const kills = Number(process.env.KILLS ?? 4), jobs_count = 50 * kills;

let baton;
before(async () => { baton = await Baton.start("--bus-lock-seconds", "3"); });
after(() => baton.stop());

it("survives kill -9 with nothing lost", { timeout: 240_000 }, async () => {
  await baton.http("POST", "/workflows", "workflow_id: w\nnodes:\n  start: {type: start, next: [a]}\n" +
    "  a: {type: task, handler: H, queue: q, next: [b]}\n  b: {type: task, handler: H, queue: q, next: [end]}\n  end: {type: end}\n", "application/yaml");
  const accepted = new Map();   // results that were sent, by task id
  const client = baton.client(undefined, 20);
  const sender = client.createSender("worker-results");
  const receiver = client.createReceiver("q");
  const subscription = receiver.subscribe({
    processMessage: async ({ body: { task_id } }) => {
      await sender.sendMessages({ body: { task_id, status: "completed" } });
      accepted.set(task_id, (accepted.get(task_id) ?? 0) + 1);
    },
    processError: async () => {},
  }, { maxConcurrentCalls: 10 });

  const submitted = [];
  const submitting = (async () => {
    while (submitted.length < jobs_count) {
      // With a key of its own, so that it may be said again by who heard no answer.
      const body = { workflow_id: "w", input_data: {}, idempotency_key: `job-${submitted.length}` };
      const job = await baton.http("POST", "/jobs", body).catch(() => new Promise((resolve) => setTimeout(resolve, 50)));
      if (job) submitted.push(job.job_id);
    }
  })();
  for (let i = 0; i < kills; i++) {
    await new Promise((resolve) => setTimeout(resolve, 500 + 200 * (i % 3)));
    await baton.kill();
    await baton.start(...baton.options);
  }
  await submitting;
  const open = new Set(submitted);
  await until("the end of all jobs", async () => {
    for (const id of open) if ((await baton.http("GET", `/jobs/${id}`)).status === "COMPLETED") open.delete(id);
    return open.size === 0;
  }, 90);
  await subscription.close();
  assert.equal(new Set(submitted).size, jobs_count);
  // A result whose acceptance was not heard of is sent again by the SDK, or by whoever got the task then.
  const results = baton.sql("SELECT job_id, node_id, count(*) FROM dag_task_results GROUP BY job_id, node_id");
  assert.equal(results.length, 2 * jobs_count);
  for (const [job, node, count] of results) assert.equal(count, 1, `${job} ${node}`);
  // Whoever sent a result twice had no answer to the first, or got the task again after a kill: at most once for each kill.
  for (const [task, count] of accepted) assert.ok(count <= 1 + kills, task);
});

it("stops at once though many receivers wait", async () => {
  await baton.http("POST", "/workflows", "workflow_id: idle\nnodes:\n  start: {type: start, next: [t]}\n" +
    "  t: {type: task, handler: H, queue: idle, next: [end]}\n  end: {type: end}\n", "application/yaml");
  const receivers = Array.from({ length: 20 }, () => baton.client().createReceiver("idle"));
  for (const receiver of receivers) receiver.subscribe({ processMessage: async () => {}, processError: async () => {} });
  await until("the receivers", async () => (await baton.http("GET", "/workers")).workers.filter((each) => each.queues.includes("idle")).length === 20);
  const began = Date.now();
  await baton.kill("SIGTERM");
  assert.equal(baton.process.exitCode, 0);
  assert.ok(Date.now() - began < 10_000);
});
