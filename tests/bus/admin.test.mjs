// ServiceBusAdministrationClient against the management API: every operation, and what is refused.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { Baton, refusal, until } from "./baton.mjs";
import { after, before, describe, it } from "./testing.mjs";

const all = async (pages) => { const found = []; for await (const each of pages) found.push(each); return found; };
const names = async (pages, key = "name") => (await all(pages)).map((each) => each[key]);
const forEver = "P10675199DT2H48M5.4775807S";

describe("without tokens", () => {
  let baton, admin;
  before(async () => { baton = await Baton.start(); admin = baton.administration(); });
  after(() => baton.stop());

  it("a queue is made with the defaults, read, changed and deleted", async () => {
    const made = await admin.createQueue("plain");
    assert.equal(made.name, "plain");
    assert.equal(made.lockDuration, "PT1M");
    assert.equal(made.maxDeliveryCount, 10);
    assert.equal(made.defaultMessageTimeToLive, forEver);
    assert.equal(made.status, "Active");
    assert.equal(made.enablePartitioning, false);
    const changed = await admin.updateQueue({ ...made, maxDeliveryCount: 3, lockDuration: "PT30S", userMetadata: "a <b> & ä" });
    assert.equal(changed.maxDeliveryCount, 3);
    const read = await admin.getQueue("plain");
    assert.equal(read.lockDuration, "PT30S");
    assert.equal(read.userMetadata, "a <b> & ä");
    assert.equal(read.maxSizeInMegabytes, 1024);
    await admin.deleteQueue("plain");
    assert.equal(await admin.queueExists("plain"), false);
  });

  it("a queue is made with every option that means something", async () => {
    const options = { lockDuration: "PT45S", maxSizeInMegabytes: 2048, requiresDuplicateDetection: true, defaultMessageTimeToLive: "P7DT1H", deadLetteringOnMessageExpiration: true,
      duplicateDetectionHistoryTimeWindow: "PT5M", maxDeliveryCount: 7, autoDeleteOnIdle: "PT1H", status: "SendDisabled", userMetadata: "mine", enableBatchedOperations: true,
      enablePartitioning: false, requiresSession: false };
    await admin.createQueue("rich", options);
    const read = await admin.getQueue("rich");
    for (const [key, value] of Object.entries(options)) assert.equal(read[key], value, key);
  });

  it("names are found in any case, and may have slashes", async () => {
    await admin.createQueue("team/a/Orders");
    assert.equal((await admin.getQueue("TEAM/a/orders")).name, "team/a/Orders");
    assert.equal((await refusal(admin.createQueue("Team/A/orders"))).code, "MessageEntityAlreadyExistsError");
  });

  it("runtime properties count", async () => {
    await admin.createQueue("counted");
    const runtime = await admin.getQueueRuntimeProperties("counted");
    assert.equal(runtime.activeMessageCount, 0);
    assert.equal(runtime.deadLetterMessageCount, 0);
    assert.equal(runtime.totalMessageCount, 0);
    assert.ok(runtime.createdAt instanceof Date && Math.abs(Date.now() - runtime.createdAt) < 60_000);
    assert.ok((await all(admin.listQueuesRuntimeProperties())).some((each) => each.name === "counted"));
  });

  it("topics and subscriptions are made, read, changed, listed and deleted", async () => {
    const topic = await admin.createTopic("events", { requiresDuplicateDetection: true, defaultMessageTimeToLive: "P1D", supportOrdering: true });
    assert.equal(topic.requiresDuplicateDetection, true);
    assert.equal(await admin.topicExists("events"), true);
    assert.equal(await admin.queueExists("events"), false);
    assert.equal((await admin.updateTopic({ ...topic, userMetadata: "t" })).userMetadata, "t");
    const audit = await admin.createSubscription("events", "audit", { maxDeliveryCount: 4, deadLetteringOnFilterEvaluationExceptions: false, lockDuration: "PT10S" });
    assert.equal(audit.topicName, "events");
    assert.equal(audit.subscriptionName, "audit");
    assert.equal(audit.deadLetteringOnFilterEvaluationExceptions, false);
    assert.equal((await admin.updateSubscription({ ...audit, maxDeliveryCount: 5 })).maxDeliveryCount, 5);
    await admin.createSubscription("events", "billing");
    assert.deepEqual(await names(admin.listSubscriptions("events"), "subscriptionName"), ["audit", "billing"]);
    assert.equal((await admin.getTopicRuntimeProperties("events")).subscriptionCount, 2);
    assert.equal((await admin.getSubscriptionRuntimeProperties("events", "audit")).totalMessageCount, 0);
    assert.equal((await all(admin.listSubscriptionsRuntimeProperties("events"))).length, 2);
    assert.equal(await admin.subscriptionExists("events", "audit"), true);
    await admin.deleteSubscription("events", "billing");
    assert.equal(await admin.subscriptionExists("events", "billing"), false);
    assert.ok((await names(admin.listTopics())).includes("events"));
    await admin.deleteTopic("events");
    assert.equal(await admin.topicExists("events"), false);
    assert.equal(await admin.subscriptionExists("events", "audit"), false, "its subscriptions go with it");
  });

  it("rules of every kind come back as they were made", async () => {
    await admin.createTopic("ruled");
    await admin.createSubscription("ruled", "s");
    assert.deepEqual(await names(admin.listRules("ruled", "s")), ["$Default"]);
    assert.equal((await admin.getRule("ruled", "s", "$Default")).filter.sqlExpression, "1=1");
    const sql = { sqlExpression: "total > @limit AND region = @r AND ok = @ok AND at < @at", sqlParameters: { "@limit": 1.5, "@r": "eu & <us>", "@ok": true, "@at": new Date("2026-01-02T03:04:05Z") } };
    await admin.createRule("ruled", "s", "big", sql, { sqlExpression: "SET priority = 'high'; REMOVE total" });
    const big = await admin.getRule("ruled", "s", "big");
    assert.deepEqual(big.filter.sqlParameters, sql.sqlParameters);
    assert.equal(big.filter.sqlExpression, sql.sqlExpression);
    assert.equal(big.action.sqlExpression, "SET priority = 'high'; REMOVE total");
    const correlation = { correlationId: "c", subject: "order", to: "t", replyTo: "r", replyToSessionId: "rs", sessionId: "s", messageId: "m", contentType: "text/plain",
      applicationProperties: { color: "red", n: 3, yes: false } };
    await admin.createRule("ruled", "s", "exact", correlation);
    assert.deepEqual((await admin.getRule("ruled", "s", "exact")).filter, correlation);
  });

  it("a subscription may begin with a rule of one's own, and rules are changed and deleted", async () => {
    await admin.createTopic("begun");
    await admin.createSubscription("begun", "s", { defaultRuleOptions: { name: "mine", filter: { sqlExpression: "a = 1" } } });
    assert.deepEqual(await names(admin.listRules("begun", "s")), ["mine"]);
    const rule = await admin.getRule("begun", "s", "mine");
    await admin.updateRule("begun", "s", { ...rule, filter: { sqlExpression: "a = 2" } });
    assert.equal((await admin.getRule("begun", "s", "MINE")).filter.sqlExpression, "a = 2");
    await admin.deleteRule("begun", "s", "mine");
    assert.equal(await admin.ruleExists("begun", "s", "mine"), false);
    assert.deepEqual(await names(admin.listRules("begun", "s")), []);
  });

  it("250 queues are listed over pages", { timeout: 120_000 }, async () => {
    const wanted = Array.from({ length: 250 }, (_, i) => `page-${String(i).padStart(3, "0")}`);
    for (let i = 0; i < wanted.length; i += 25) await Promise.all(wanted.slice(i, i + 25).map((name) => admin.createQueue(name)));
    const listed = (await names(admin.listQueues())).filter((name) => name.startsWith("page-"));
    assert.deepEqual(listed, wanted);
    const sizes = [];
    for await (const page of admin.listQueues().byPage({ maxPageSize: 60 })) sizes.push(page.length);
    assert.ok(sizes.slice(0, -1).every((size) => size === 60) && sizes.length >= 5, `${sizes}`);
  });

  it("errors are those that the SDK documents", async () => {
    await admin.createQueue("twice");
    assert.equal((await refusal(admin.createQueue("twice"))).code, "MessageEntityAlreadyExistsError");
    const missing = await refusal(admin.getQueue("missing"));
    assert.equal(missing.code, "MessageEntityNotFoundError");
    assert.match(missing.message, /could not be found/);
    assert.equal((await refusal(admin.deleteQueue("missing"))).code, "MessageEntityNotFoundError");
    assert.equal((await refusal(admin.createSubscription("missing", "s"))).code, "MessageEntityNotFoundError");
    assert.equal((await refusal(all(admin.listSubscriptions("missing")))).code, "MessageEntityNotFoundError");
    assert.equal((await refusal(all(admin.listSubscriptions("twice")))).code, "MessageEntityNotFoundError", "it is a queue");
    await admin.createTopic("t");
    assert.deepEqual(await all(admin.listSubscriptions("t")), []);
    await admin.createSubscription("t", "s");
    assert.equal((await refusal(admin.createSubscription("t", "s"))).code, "MessageEntityAlreadyExistsError");
    assert.equal((await refusal(admin.createRule("t", "s", "$Default", { sqlExpression: "a = 1" }))).code, "MessageEntityAlreadyExistsError");
    assert.equal((await refusal(admin.getRule("t", "s", "missing"))).code, "MessageEntityNotFoundError");
    const wrong = await refusal(admin.createRule("t", "s", "wrong", { sqlExpression: "a = = 1" }));
    assert.equal(wrong.statusCode, 400);
    assert.match(wrong.message, /at character/);
    assert.equal((await refusal(admin.createQueue("bad name!"))).statusCode, 400);
    assert.equal((await refusal(admin.createQueue("long", { lockDuration: "PT1H" }))).statusCode, 400);
    assert.equal((await refusal(admin.deleteTopic("worker-jobs"))).code, "InvalidOperationError");
  });

  it("texts that XML cannot carry are refused, or replaced in what is shown", async () => {
    await assert.rejects(baton.make("queue", "control", { user_metadata: "a\u0001" }), /without control characters/);
    const missing = await fetch(`http://${baton.admin}/no%01such`);
    assert.equal(missing.status, 404);
    assert.match(await missing.text(), /no\ufffdsuch/);
    await baton.make("queue", "control", { user_metadata: "a\tb" });
    await baton.kill("SIGTERM");
    baton.sql("UPDATE bus_entities SET settings = replace(settings, '\\t', '\\u0001') WHERE path = 'control'");
    await baton.start();
    assert.equal((await admin.getQueue("control")).userMetadata, "a\ufffdb");
    assert.ok((await names(admin.listQueues())).includes("control"));
  });

  it("what would be silently wrong is refused", async () => {
    for (const options of [{ requiresSession: true }, { enablePartitioning: true }, { forwardTo: "twice" }, { forwardDeadLetteredMessagesTo: "twice" }]) {
      const error = await refusal(admin.createQueue("refused", options));
      assert.equal(error.statusCode, 400, JSON.stringify(options));
      assert.match(error.message, /here/);
    }
  });

  it("the topics of the site are there, and the namespace says who it is", async () => {
    const topics = await names(admin.listTopics());
    for (const name of ["orchestrator-events", "worker-jobs", "worker-results"]) assert.ok(topics.includes(name), name);
    const info = await admin.getNamespaceProperties();
    assert.equal(info.name, "baton");
    assert.equal(info.messagingSku, "Standard");
    assert.equal((await fetch(`http://${baton.admin}/health`)).status, 200);
  });
});

describe("messages", () => {
  let baton, admin, client;
  before(async () => { baton = await Baton.start(); admin = baton.administration(); client = baton.client(); });
  after(() => baton.stop());

  // Two dead letters, one that waits, one that is scheduled, one that is deferred.
  async function fill(name) {
    await admin.createQueue(name);
    const sender = client.createSender(name), receiver = client.createReceiver(name);
    await sender.sendMessages([{ body: { n: 1 }, messageId: "one", subject: "s", applicationProperties: { color: "red", n: 7 } }, { body: "two", messageId: "two" }, { body: Buffer.from([0xff, 0]), messageId: "three" }]);
    for (const message of await receiver.receiveMessages(3, { maxWaitTimeInMs: 5000 })) {
      if (message.messageId === "three") await receiver.deferMessage(message);
      else await receiver.deadLetterMessage(message, { deadLetterReason: `reason ${message.messageId}`, deadLetterErrorDescription: "why" });
    }
    await sender.sendMessages({ body: { waits: true }, messageId: "four" });
    await sender.scheduleMessages({ body: "later", messageId: "five" }, new Date(Date.now() + 3_600_000));
  }

  it("are counted", async () => {
    await fill("counts");
    const runtime = await admin.getQueueRuntimeProperties("counts");
    assert.equal(runtime.activeMessageCount, 1);
    assert.equal(runtime.deadLetterMessageCount, 2);
    assert.equal(runtime.scheduledMessageCount, 1);
    assert.equal(runtime.totalMessageCount, 5);
    assert.ok(runtime.sizeInBytes > 0);
    const shown = JSON.parse(baton.bus("show", "counts", "--json"));
    assert.deepEqual(shown.counts, { active: 1, dead: 2, scheduled: 1, deferred: 1 });
    assert.ok(Math.abs(Date.now() - Date.parse(shown.oldest_enqueued_at)) < 60_000);
    assert.match(baton.bus("show", "counts"), /1 active, 2 dead, 1 scheduled, 1 deferred/);
  });

  it("are peeked at, with what they say if asked", async () => {
    await fill("peeked");
    const brief = await baton.http("GET", "/bus/entities/peeked/messages");
    assert.deepEqual(brief.messages.map((each) => [each.message_id, each.state]).sort(), [["five", "scheduled"], ["four", "active"], ["three", "deferred"]]);
    assert.ok(brief.messages.every((each) => !("body" in each)));
    const full = await baton.http("GET", "/bus/entities/peeked/messages?full=true");
    const byId = Object.fromEntries(full.messages.map((each) => [each.message_id, each]));
    assert.deepEqual(byId.four.body, { waits: true });
    assert.equal(byId.four.body_type, "json");
    assert.equal(byId.three.body, "/wA=");
    assert.equal(byId.three.body_type, "base64");
    const dead = await baton.http("GET", "/bus/entities/peeked/messages?dead=true&full=true&limit=1");
    assert.equal(dead.messages.length, 1);
    assert.equal(dead.messages[0].dead_letter_reason, "reason one");
    assert.deepEqual(dead.messages[0].body, { n: 1 });
    assert.equal(dead.messages[0].application_properties.color, "red");
    assert.equal(dead.messages[0].properties.subject, "s");
    const next = await baton.http("GET", `/bus/entities/peeked/messages?dead=true&after=${dead.next_after}`);
    assert.deepEqual(next.messages.map((each) => each.message_id), ["two"]);
    assert.match(baton.bus("peek", "peeked", "--body"), /four.*waits/);
    assert.match(baton.bus("dead-letters", "peeked"), /two +reason two +why/);
  });

  it("beyond a page are told of", async () => {
    await fill("paged");
    assert.match(baton.busSaid("dead-letters", "paged", "--max", "1"), /^More: add --from 2$/m);
    assert.equal(baton.busSaid("dead-letters", "paged", "--max", "1", "--from", "2"), "");
    assert.match(baton.busSaid("peek", "paged", "--max", "2"), /^More: add --from \d+$/m);
    assert.equal(baton.busSaid("peek", "paged"), "");
  });

  it("that are dead letters are replayed one by one, or all of them", async () => {
    await fill("replayed");
    const [first] = JSON.parse(baton.bus("dead-letters", "replayed", "--json")).messages;
    assert.equal(baton.bus("replay", "replayed", "--sequence", `${first.sequence_number}`), "1 replayed.");
    const received = await client.createReceiver("replayed", { receiveMode: "receiveAndDelete" }).receiveMessages(10, { maxWaitTimeInMs: 3000 });
    const again = received.find((each) => each.messageId === "one");
    assert.deepEqual(again.body, { n: 1 });
    assert.equal(again.deadLetterReason, undefined);
    assert.equal(again.applicationProperties.DeadLetterReason, undefined);
    assert.equal(JSON.parse(baton.bus("replay", "replayed", "--all", "--json")).replayed, 1);
    assert.equal((await admin.getQueueRuntimeProperties("replayed")).deadLetterMessageCount, 0);
  });

  it("that die again are not replayed for ever", { timeout: 60_000 }, async () => {
    await admin.createQueue("poison", { maxDeliveryCount: 1 });
    const sender = client.createSender("poison"), receiver = client.createReceiver("poison");
    // So large that a replay takes several requests, and finds those that died meanwhile.
    for (let i = 0; i < 30; ++i) await sender.sendMessages({ body: "x".repeat(900_000), messageId: `${i}` });
    const dead = async (count) => (await admin.getQueueRuntimeProperties("poison")).deadLetterMessageCount === count;
    receiver.subscribe({ processMessage: (message) => receiver.deadLetterMessage(message), processError: async () => {} }, { autoCompleteMessages: false, maxConcurrentCalls: 10 });
    await until("they are dead", () => dead(30));
    assert.equal(JSON.parse(await baton.busBeside("replay", "poison", "--all", "--json")).replayed, 30);
    await until("they are dead again", () => dead(30));
    await receiver.close();
  });

  it("go where the rules that were made say", async () => {
    await admin.createTopic("ruled");
    await admin.createSubscription("ruled", "big", { defaultRuleOptions: { name: "r", filter: { sqlExpression: "total > @limit", sqlParameters: { "@limit": 100 } }, action: { sqlExpression: "SET seen = 'yes'" } } });
    await admin.createSubscription("ruled", "exact", { defaultRuleOptions: { name: "r", filter: { subject: "order", applicationProperties: { total: 5 } } } });
    await client.createSender("ruled").sendMessages([{ body: 1, subject: "order", applicationProperties: { total: 5 } }, { body: 2, subject: "order", applicationProperties: { total: 500 } }]);
    assert.equal((await admin.getSubscriptionRuntimeProperties("ruled", "big")).activeMessageCount, 1);
    assert.equal((await admin.getSubscriptionRuntimeProperties("ruled", "exact")).activeMessageCount, 1);
    const [big] = await client.createReceiver("ruled", "big").receiveMessages(1, { maxWaitTimeInMs: 5000 });
    assert.equal(big.body, 2);
    assert.equal(big.applicationProperties.seen, "yes");
  });
});

it("what was made is there after kill -9", async () => {
  const baton = await Baton.start();
  try {
    const admin = baton.administration();
    await admin.createQueue("kept", { maxDeliveryCount: 4 });
    await admin.createTopic("t");
    await admin.createSubscription("t", "s", { defaultRuleOptions: { name: "mine", filter: { sqlExpression: "a = @p", sqlParameters: { "@p": 2 } } } });
    await admin.createQueue("gone");
    await admin.deleteQueue("gone");
    await baton.kill();
    await baton.start();
    assert.equal((await admin.getQueue("kept")).maxDeliveryCount, 4);
    assert.deepEqual((await admin.getRule("t", "s", "mine")).filter.sqlParameters, { "@p": 2 });
    assert.equal(await admin.queueExists("gone"), false);
  } finally { await baton.stop(); }
});

describe("with tokens", () => {
  let baton;
  const key = (...options) => JSON.parse(baton.command("token", "create", "--json", "--bus", ...options));
  const as = ({ token_id: id, shared_access_key: secret }) => baton.administration(id, secret);
  before(async () => { baton = new Baton(); key("--role", "admin"); await baton.start(); });
  after(() => baton.stop());

  it("a wrong, unknown or revoked key opens nothing", async () => {
    const good = key("--role", "operator");
    for (const wrong of [{ ...good, shared_access_key: "bm8=" }, { token_id: "nobody", shared_access_key: "bm8=" }])
      assert.equal((await refusal(as(wrong).createQueue("q"))).code, "UnauthorizedRequestError");
    baton.command("token", "revoke", good.token_id);
    assert.equal((await refusal(as(good).getQueue("q"))).code, "UnauthorizedRequestError");
  });

  it("roles hold: an operator changes, a viewer reads, a worker neither", async () => {
    await as(key("--role", "operator")).createQueue("roles");
    const viewer = as(key("--role", "viewer")), worker = as(key("--role", "worker"));
    assert.equal((await viewer.getQueue("roles")).name, "roles");
    assert.equal((await refusal(viewer.deleteQueue("roles"))).code, "UnauthorizedRequestError");
    assert.equal((await refusal(worker.getQueue("roles"))).code, "UnauthorizedRequestError");
  });

  it("a signature for one queue opens that one", async () => {
    const { token_id: id, shared_access_key: secret } = key("--role", "admin");
    await Promise.all(["scoped", "scoped2"].map((name) => as({ token_id: id, shared_access_key: secret }).createQueue(name)));
    const resource = encodeURIComponent(`sb://${baton.admin}/scoped`), until = Math.floor(Date.now() / 1000) + 600;
    const signature = createHmac("sha256", secret).update(`${resource}\n${until}`).digest("base64");
    const headers = { Authorization: `SharedAccessSignature sr=${resource}&sig=${encodeURIComponent(signature)}&se=${until}&skn=${id}` };
    const status = async (method, path) => (await fetch(`http://${baton.admin}${path}?api-version=2021-05`, { method, headers })).status;
    assert.equal(await status("GET", "/Scoped"), 200);
    assert.equal(await status("GET", "/scoped2"), 401);
    assert.equal(await status("DELETE", "/scoped2"), 401);
    assert.equal(await status("GET", "/$Resources/Queues"), 401);
    assert.equal(await status("DELETE", "/scoped"), 200);
  });

  it("every operation signs what it asks for", async () => {
    const admin = as(key("--role", "admin"));
    await admin.createTopic("team/signed-topic");
    await admin.createSubscription("team/signed-topic", "s");
    await admin.createRule("team/signed-topic", "s", "r", { sqlExpression: "a = 1" });
    assert.deepEqual(await names(admin.listRules("team/signed-topic", "s")), ["$Default", "r"]);
    assert.equal((await admin.getRule("team/signed-topic", "s", "$Default")).name, "$Default");
    assert.deepEqual(await names(admin.listSubscriptions("team/signed-topic"), "subscriptionName"), ["s"]);
    assert.ok((await names(admin.listTopics())).includes("team/signed-topic"));
    assert.equal((await admin.getNamespaceProperties()).name, "baton");
  });

  it("tenants have queues of their own", async () => {
    const acme = as(key("--role", "admin", "--tenant", "acme")), other = as(key("--role", "admin", "--tenant", "other"));
    await acme.createQueue("own");
    assert.equal(await other.queueExists("own"), false);
    await other.createQueue("own");
    await acme.deleteQueue("own");
    assert.equal(await other.queueExists("own"), true);
  });
});
