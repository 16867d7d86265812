// Pools are subscriptions whose messages are jobs: how many wait and how many are dead is counted, and where dead ones are is told.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { after, before, describe, it } from "node:test";
import { Baton, refusal, until } from "./baton.mjs";

const runbook = `
name: move
data_source: {type: csv, connection: NOWHERE_CSV, interval: 5m, primary_key: Upn, batch_time_column: Day}
phases:
  - name: go
    offset: T-0
    steps:
      - {name: move, worker_id: counted, function: Move, params: {Upn: "{{Upn}}"}}
`;
const path = "worker-jobs/Subscriptions/worker-counted";

describe("a pool", () => {
  let baton, client;
  before(async () => {
    baton = await Baton.start("--scheduler", "off");
    client = baton.client();
    await baton.http("POST", "/bus/entities", { type: "subscription", path, rules: [{ name: "$Default", sql: { expression: "WorkerId = 'counted'" } }] });
    await baton.http("POST", "/runbooks", runbook, "application/yaml");
    const { id } = await baton.http("POST", "/runbooks/move/batches", "Upn\nada\nbob\ncem\ndee\n", "text/csv");
    await baton.http("POST", `/batches/${id}/advance`, {});
    await until("the jobs", async () => (await baton.http("GET", `/bus/entities/${encodeURIComponent(path)}`)).counts.active === 4);
    const receiver = client.createReceiver("worker-jobs", "worker-counted");
    const messages = [];
    while (messages.length < 2) messages.push(...await receiver.receiveMessages(2 - messages.length, { maxWaitTimeInMs: 5000 }));
    await receiver.deadLetterMessage(messages[0], { deadLetterReason: "no" });  // and the worker keeps the other
  });
  after(() => baton.stop());

  it("shows how many jobs wait and how many are dead", async () => {
    const entity = await baton.http("GET", `/bus/entities/${encodeURIComponent(path)}`);
    assert.equal(entity.pool, "counted");
    assert.deepEqual(entity.counts, { active: 2, dead: 1, scheduled: 0, deferred: 0 });
    assert.equal(entity.counts_are_at_least, false);
    assert.match(baton.bus("list"), new RegExp(`${path} +subscription +Active +2 +1 +0 +0`));
    assert.match(baton.bus("show", "worker-jobs/worker-counted"), /pool +counted: 2 jobs wait, 1 are dead letters/);
  });

  it("shows them to the administration client", async () => {
    const admin = baton.administration();
    const found = await admin.getSubscriptionRuntimeProperties("worker-jobs", "worker-counted");
    assert.equal(found.activeMessageCount, 2);
    assert.equal(found.deadLetterMessageCount, 1);
    assert.equal(found.totalMessageCount, 3);
    for await (const one of admin.listSubscriptionsRuntimeProperties("worker-jobs")) assert.equal(one.activeMessageCount, 2);
  });

  it("has no gauge that says that it is empty", async () => {
    const metrics = await (await fetch(`${baton.url}/metrics`)).text();
    assert.ok(!metrics.includes(`entity="${path}"`), metrics);
  });

  it("says where its dead letters are", async () => {
    const dead = client.createReceiver("worker-jobs", "worker-counted", { subQueueType: "deadLetter" });
    for (const asked of [dead.receiveMessages(1, { maxWaitTimeInMs: 1000 }), dead.peekMessages(1)]) assert.match((await refusal(asked)).message, /baton dead-letter/);
    const binary = process.env.BATON_BINARY ?? new URL("../../build/release/baton", import.meta.url).pathname;
    for (const verb of ["peek", "dead-letters"]) {
      const said = spawnSync(binary, ["bus", verb, "worker-jobs/worker-counted", "--server", baton.url], { encoding: "utf8" });
      assert.notEqual(said.status, 0);
      assert.match(said.stderr, /is the pool 'counted'.*baton dead-letter list/);
    }
    const { dead_letters: letters } = await baton.http("GET", "/dead-letters");
    assert.equal(letters.length, 1);
  });
});
