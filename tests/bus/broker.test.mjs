// Baton as a client of a broker: the same site over a real RabbitMQ, kills of either, and a Service Bus that wants TLS and tokens.
import assert from "node:assert/strict";
import { Baton, until } from "./baton.mjs";
import { Rabbit } from "./rabbit.mjs";
import { Certificate, ServiceBus } from "./service_bus.mjs";
import { lateAndLeaver, waves } from "./site.mjs";
import { PlainBus, rabbitAddresses } from "./site_buses.mjs";
import { after, afterEach, before, describe, it } from "./testing.mjs";

const kills = Number(process.env.KILLS ?? 1);

const workflow = "workflow_id: w\nnodes:\n  start: {type: start, next: [t]}\n" +
  "  t: {type: task, handler: H, queue: tasks, next: [end]}\n  end: {type: end}\n";

const metric = async (baton, name) => Number((await (await fetch(`${baton.url}/metrics`)).text()).match(new RegExp(`^${name} (\\d+)`, "m"))?.[1]);

describe("RabbitMQ", () => {
  let rabbit, bus;
  before(async () => { rabbit = await Rabbit.start(); bus = new PlainBus(rabbit.url(), rabbitAddresses); });
  after(async () => { bus?.close(); await rabbit?.stop(); });

  it("carries the waves of a site with rhea, the program that site.test.mjs runs over our endpoint, with another URL and another table of addresses", async () => {
    const baton = await Baton.start("--scheduler", "off", "--bus", rabbit.url(), "--bus-pools", "pool");
    try {
      await waves(baton, bus);
      await lateAndLeaver(baton, bus);
    } finally { await baton.stop(); }
  });

  it("rejects what it can never take, and says so", async () => {
    const baton = await Baton.start("--bus", rabbit.url());
    const dead = [];
    const receiving = bus.receive("", "", async (body) => { dead.push(body); }, "dead");
    try {
      await bus.send("worker-results", { no: "result" });
      await until("the dead letter", () => dead.length === 1);
      assert.deepEqual(dead[0], { no: "result" });
      assert.equal(await metric(baton, "baton_broker_rejected_total"), 1);
    } finally { receiving.close(); await baton.stop(); }
  });

  it("loses nothing when either is killed, and nothing is done twice in baton", { timeout: 240_000 }, async () => {
    const baton = await Baton.start("--bus", rabbit.url(), "--bus-queues", "tasks", "--bus-lock-seconds", "4");
    const seen = new Map();
    const receiving = bus.receive("", "", async ({ task_id, lease }) => {
      seen.set(task_id, (seen.get(task_id) ?? 0) + 1);
      await bus.send("worker-results", { task_id, status: "completed" });
    }, "tasks");
    try {
      await baton.http("POST", "/workflows", workflow, "application/yaml");
      const jobs = [];
      const submitting = (async () => {
        while (jobs.length < 100 * kills) {
          const body = { workflow_id: "w", input_data: {}, idempotency_key: `job-${jobs.length}` };
          const job = await baton.http("POST", "/jobs", body).catch(() => new Promise((resolve) => setTimeout(resolve, 50)));
          if (job) jobs.push(job.job_id);
        }
      })();
      for (let i = 0; i < kills; i++) {
        await new Promise((resolve) => setTimeout(resolve, 700));
        await baton.kill();
        await baton.start(...baton.options);
        await new Promise((resolve) => setTimeout(resolve, 300));
        await rabbit.kill();
        await rabbit.start();
      }
      await submitting;
      const open = new Set(jobs);
      await until("the end of all jobs", async () => {
        for (const id of open) if ((await baton.http("GET", `/jobs/${id}`)).status === "COMPLETED") open.delete(id);
        return open.size === 0;
      }, 90);
      const results = baton.sql("SELECT job_id, count(*) FROM dag_task_results GROUP BY job_id");
      assert.equal(results.length, jobs.length);
      for (const [job, count] of results) assert.equal(count, 1, job);
      // A message comes again after a confirmation was lost with a kill: of baton's word, or of the worker's.
      for (const [task, count] of seen) assert.ok(count <= 1 + 4 * kills, `${task}: ${count}`);
    } finally { receiving.close(); await baton.stop(); }
  });

  it("goes on with the rest when an exchange is missing", async () => {
    const baton = await Baton.start("--bus", rabbit.url(), "--bus-jobs-topic", "missing", "--bus-pools", "pool", "--bus-queues", "tasks");
    const receiving = bus.receive("", "", async ({ task_id }) => { await bus.send("worker-results", { task_id, status: "completed" }); }, "tasks");
    try {
      await baton.http("POST", "/workflows", workflow, "application/yaml");
      const { job_id } = await baton.http("POST", "/jobs", { workflow_id: "w", input_data: {} });
      assert.equal((await baton.http("GET", `/jobs/${job_id}?wait_ms=10000`)).status, "COMPLETED");
    } finally { receiving.close(); await baton.stop(); }
  });
});

describe("a Service Bus with TLS and tokens", () => {
  let certificate, azure, baton;
  before(async () => {
    certificate = new Certificate();
    azure = await new ServiceBus({ certificate }).listen();
  });
  afterEach(async () => { await baton?.stop(); Object.assign(azure, { refuses: undefined, refusal: undefined }); });
  after(() => { azure.close(); certificate.remove(); });

  it("gets jobs with their ids and properties, and gives results back", async () => {
    baton = await Baton.start("--bus", azure.connectionString(), "--bus-ca", certificate.file, "--bus-queues", "tasks");
    await baton.http("POST", "/workflows", workflow, "application/yaml");
    const { job_id } = await baton.http("POST", "/jobs", { workflow_id: "w", input_data: {} });
    const [message] = await until("the task", () => azure.sent.get("tasks"));
    const task = JSON.parse(message.body.content);
    assert.equal(message.message_id, task.task_id);
    assert.equal(message.content_type, "application/json");
    assert.deepEqual(message.application_properties, { WorkerId: "tasks", FunctionName: "H" });
    const results = "worker-results/Subscriptions/orchestrator";
    await until("the subscription", () => azure.receivers.get(results)?.sendable());
    azure.say(results, { task_id: task.task_id, status: "completed" });
    assert.equal((await baton.http("GET", `/jobs/${job_id}?wait_ms=5000`)).status, "COMPLETED");
    // Again: it changes nothing, and is taken. What can never be read is a dead letter, with its reason.
    azure.say(results, { task_id: task.task_id, status: "completed" });
    azure.say(results, ["nothing"]);
    await until("the dead letter", () => azure.rejected.length === 1);
    assert.equal(azure.rejected[0].condition, "com.microsoft:dead-letter");
    assert.ok(azure.rejected[0].info.DeadLetterErrorDescription);
    await until("the second one", async () => (await metric(baton, "baton_broker_consumed_total")) === 2);
    await baton.stop();
  });

  it("gives back what it cannot take, which is published when it can", async () => {
    azure.sent.clear();
    azure.refuses = "release";
    baton = await Baton.start("--bus", azure.connectionString(), "--bus-ca", certificate.file, "--bus-queues", "tasks");
    await baton.http("POST", "/workflows", workflow, "application/yaml");
    const { job_id } = await baton.http("POST", "/jobs", { workflow_id: "w", input_data: {} });
    await until("the refusal", () => baton.sql("SELECT 1 FROM dag_job_events WHERE event_type='node_lease_expired'").length > 0);
    azure.refuses = undefined;
    const [message] = await until("the task", () => azure.sent.get("tasks"));
    const { task_id, lease } = JSON.parse(message.body.content);
    assert.equal(lease, undefined);  // of two copies either's result counts
    await baton.http("POST", "/callbacks/task-result", { task_id, status: "completed" });
    assert.equal((await baton.http("GET", `/jobs/${job_id}?wait_ms=5000`)).status, "COMPLETED");
    await baton.stop();
  });

  // How often a task was handed out, and what became of it, when the broker rejected it `times` times for this reason.
  const rejectedFor = async (condition, times) => {
    Object.assign(azure, { refuses: "reject", refusal: { condition, description: "a reason" }, refused: 0 });
    azure.sent.clear();
    baton = await Baton.start("--bus", azure.connectionString(), "--bus-ca", certificate.file, "--bus-queues", "tasks");
    await baton.http("POST", "/workflows", workflow, "application/yaml");
    const { job_id } = await baton.http("POST", "/jobs", { workflow_id: "w", input_data: {} });
    await until("the refusals", () => azure.refused === times, 30);
    const events = () => baton.sql("SELECT event_data FROM dag_job_events WHERE event_type='node_lease_expired'").map(([data]) => JSON.parse(data));
    await until("their events", () => events().length === times);
    Object.assign(azure, { refuses: undefined, refusal: undefined });
    return { job_id, events: events() };
  };

  it("rejects for a while, which uses up no deliveries, and is left alone when it is busy", async () => {
    const began = Date.now();
    const { events } = await rejectedFor("com.microsoft:server-busy", 2);
    assert.ok(Date.now() - began >= 2000, `twice within ${Date.now() - began} ms`);
    for (const event of events) assert.deepEqual(event, { reason: "the broker rejected it: com.microsoft:server-busy: a reason" });
    await until("the task", () => azure.sent.get("tasks"));
    assert.equal(baton.log.match(/rejected it: com.microsoft:server-busy: a reason; trying again/g).length, 1);
    await baton.stop();
  });

  it("rejects what is wrong with a message, which uses up its deliveries", async () => {
    const { events } = await rejectedFor("amqp:invalid-field", 1);
    assert.deepEqual(events[0], { reason: "the broker rejected it: amqp:invalid-field: a reason", abandoned: true });
    await baton.stop();
  });

  it("hears of a message that is too large for baton, and so does the log", async () => {
    azure.rejected.length = 0;
    baton = await Baton.start("--bus", azure.connectionString(), "--bus-ca", certificate.file, "--body-max", "64k");
    const results = "worker-results/Subscriptions/orchestrator";
    await until("the subscription", () => azure.receivers.get(results)?.sendable());
    azure.say(results, { task_id: "x", status: "completed", output: "y".repeat(100_000) });
    await until("the dead letter", () => azure.rejected.length === 1);
    assert.equal(azure.rejected[0].condition, "com.microsoft:dead-letter");
    assert.match(azure.rejected[0].info.DeadLetterErrorDescription, /at most 65536 bytes/);
    assert.match(baton.log, /a message from worker-results\/Subscriptions\/orchestrator is rejected: a message has at most 65536 bytes/);
    assert.equal(await metric(baton, "baton_broker_rejected_total"), 1);
    await baton.stop();
  });

  it("is asked again for a link that it refused without a word", async () => {
    azure.sent.clear();
    azure.attached.length = 0;
    azure.mute.add("tasks");
    baton = await Baton.start("--bus", azure.connectionString(), "--bus-ca", certificate.file, "--bus-queues", "tasks");
    await until("the refusal", () => azure.attached.includes("tasks"));
    azure.mute.clear();
    await baton.http("POST", "/workflows", workflow, "application/yaml");
    await baton.http("POST", "/jobs", { workflow_id: "w", input_data: {} });
    await until("the task", () => azure.sent.get("tasks"));
    assert.match(baton.log, /the broker ended the link to 'tasks': it was refused without a reason/);
    await baton.stop();
  });

  it("is not told anything by who does not trust its certificate, and lets in nobody with another key", async () => {
    azure.tokens.clear();
    for (const options of [["--bus", azure.connectionString()], ["--bus", azure.connectionString("another"), "--bus-ca", certificate.file]]) {
      baton = await Baton.start(...options, "--bus-queues", "tasks");
      await new Promise((resolve) => setTimeout(resolve, 2000));
      assert.equal(await metric(baton, "baton_broker_connected"), 0);
      assert.equal(azure.tokens.size, 0);
      await baton.stop();
    }
    assert.deepEqual(baton.log.match(/no connection to the broker.*?: it does not take the key 'site': 401/g).length, 1);
    assert.ok(!baton.log.includes("amqp:connection:forced"), baton.log);  // that is what followed
  });

  it("is told of once if it ends one connection after the other for one reason", async () => {
    azure.isShut = true;
    const before = azure.connections;
    baton = await Baton.start("--bus", azure.connectionString(), "--bus-ca", certificate.file);
    await until("some tries", () => azure.connections >= before + 3);
    azure.isShut = false;
    assert.equal(baton.log.match(/amqp:connection:forced: not now/g).length, 1);
  });

  it("has a link again in the log only if its loss is there", async () => {
    const results = "worker-results/Subscriptions/orchestrator";
    azure.attached.length = 0;
    baton = new Baton();
    baton.logLevel = "info";
    await baton.start("--bus", azure.connectionString(), "--bus-ca", certificate.file);
    const links = () => azure.attached.filter((address) => address === results).length;
    for (const [condition, count] of [["amqp:link:detach-forced", 1], ["amqp:not-found", 2]]) {
      await until("the subscription", () => links() === count && azure.receivers.get(results)?.sendable());
      azure.receivers.get(results).close({ condition, description: "a reason" });
    }
    await until("the last one", () => links() === 3 && baton.log.includes(`the broker has '${results}' again`));
    assert.equal(baton.log.match(/the broker has '.*' again/g).length, 1);
  });
});
