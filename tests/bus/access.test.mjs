// Who is let in at the endpoint, and to what.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import rhea from "rhea";
import { Baton, refusal, until } from "./baton.mjs";
import { after, before, describe, it } from "./testing.mjs";

const workflow = "workflow_id: w\nnodes:\n  start: {type: start, next: [t]}\n  t: {type: task, handler: H, queue: q, next: [end]}\n  end: {type: end}\n";

let baton, admin;
const key = (...options) => JSON.parse(baton.command("token", "create", "--json", ...options));

before(async () => {
  baton = new Baton();
  admin = key("--role", "admin");
  baton.token = admin.token;
  await baton.start();
  await baton.http("POST", "/workflows", workflow, "application/yaml");
});
after(() => baton.stop());

const connect = ({ token_id: id, shared_access_key: secret }) => baton.client(baton.connectionString(id, secret));
const receive = (client, queue = "q") => client.createReceiver(queue).receiveMessages(1, { maxWaitTimeInMs: 1000 });
const send = (client, topic) => client.createSender(topic).sendMessages({ body: { task_id: "no_task_0", status: "completed" } });

describe("a shared access key", () => {
  it("of a worker lets it receive and answer, and no more", async () => {
    const worker = connect(key("--role", "worker", "--bus"));
    const job = await baton.http("POST", "/jobs", { workflow_id: "w", input_data: {} });
    const receiver = worker.createReceiver("q");
    const [message] = await receiver.receiveMessages(1, { maxWaitTimeInMs: 5000 });
    await worker.createSender("worker-results").sendMessages({ body: { task_id: message.body.task_id, status: "completed" } });
    await receiver.completeMessage(message);
    assert.equal((await baton.http("GET", `/jobs/${job.job_id}?wait_ms=5000`)).status, "COMPLETED");
    assert.equal((await refusal(send(worker, "orchestrator-events"))).code, "UnauthorizedAccess");
  });

  it("of an operator does not receive", async () => {
    const operator = connect(key("--role", "operator", "--bus"));
    assert.equal((await refusal(receive(operator))).code, "UnauthorizedAccess");
  });

  it("of a viewer makes no subscription", async () => {
    const viewer = connect(key("--role", "viewer", "--bus"));
    assert.equal((await refusal(viewer.createReceiver("worker-jobs", "worker-viewed").peekMessages(1))).code, "UnauthorizedAccess");
    assert.match((await refusal(baton.http("GET", "/bus/entities/worker-jobs%2FSubscriptions%2Fworker-viewed"))).message, /404/);
  });

  it("of another tenant sees nothing of this one", async () => {
    const stranger = connect(key("--role", "worker", "--tenant", "acme", "--bus"));
    const job = await baton.http("POST", "/jobs", { workflow_id: "w", input_data: {} });
    assert.equal((await refusal(receive(stranger))).code, "MessagingEntityNotFound");
    assert.deepEqual(await receive(stranger, "functionapp-tasks"), []);
    const error = await refusal(stranger.createSender("worker-results").sendMessages({ body: { task_id: `${job.job_id}_t_0`, status: "completed" } }));
    assert.match(error.message, /no task/);
    assert.equal((await baton.http("GET", `/jobs/${job.job_id}`)).status, "RUNNING");
    const own = connect(key("--role", "worker", "--bus"));
    assert.equal((await receive(own)).length, 1);
  });

  it("that is wrong, unknown or revoked opens nothing", async () => {
    const good = key("--role", "worker", "--bus");
    for (const wrong of [{ ...good, shared_access_key: "bm8=" }, { token_id: "nobody", shared_access_key: "bm8=" }, { token_id: admin.token_id, shared_access_key: admin.token }])
      assert.equal((await refusal(receive(connect(wrong)))).code, "UnauthorizedAccess");
    const open = connect(good);
    assert.deepEqual(await receive(open), []);
    baton.command("token", "revoke", good.token_id);
    await until("the end of what is open", () => receive(open).then(() => false, () => true));
    assert.equal((await refusal(receive(connect(good)))).code, "UnauthorizedAccess");
  });
});

describe("a shared access signature", () => {
  const signature = ({ token_id: id, shared_access_key: secret }, expiry) => {
    const resource = encodeURIComponent(`sb://${baton.amqp}/`);
    const signed = createHmac("sha256", secret).update(`${resource}\n${expiry}`).digest("base64");
    return `SharedAccessSignature sr=${resource}&sig=${encodeURIComponent(signed)}&se=${expiry}&skn=${id}`;
  };
  // With a signature instead of a key the SDK logs in without SASL; `name` makes it say ANONYMOUS, as with a key.
  const client = (expiry, name = "any") => {
    const made = baton.client(`Endpoint=sb://${baton.amqp};SharedAccessSignature=${signature(key("--role", "worker", "--bus"), expiry)};UseDevelopmentEmulator=true;`);
    made._connectionContext.connection._connection.options.username = name;
    return made;
  };
  const now = () => Math.floor(Date.now() / 1000);

  it("opens what a key does", async () => {
    assert.deepEqual(await receive(client(now() + 600), "functionapp-tasks"), []);
  });

  it("does so without SASL", { todo: "the endpoint wants SASL" }, async () => {
    assert.deepEqual(await receive(client(now() + 600, null), "functionapp-tasks"), []);
  });

  it("that has expired opens nothing", async () => {
    const expired = client(now() - 10);
    for (const tried of [() => receive(expired, "functionapp-tasks"), () => send(expired, "worker-results"), () => expired.createReceiver("q").peekMessages(1)]) {
      const error = await refusal(tried());
      assert.equal(error.code, "UnauthorizedAccess");
      assert.match(error.message, /expired/);
    }
  });

  it("that expires ends what it has opened", async () => {
    const soon = client(now() + 2), receiver = soon.createReceiver("functionapp-tasks"), sender = soon.createSender("worker-results");
    const ask = () => receiver.receiveMessages(1, { maxWaitTimeInMs: 100 });
    assert.deepEqual(await ask(), []);
    assert.match((await refusal(sender.sendMessages({ body: { task_id: "no_task_0", status: "completed" } }))).message, /no task/);
    const error = await until("the end", () => ask().then(() => undefined, (why) => why));
    assert.equal(error.code, "UnauthorizedAccess");
    assert.equal((await refusal(sender.sendMessages({ body: { task_id: "no_task_0", status: "completed" } }))).code, "UnauthorizedAccess");
  });
});

// A client that is no SDK of Azure.
function connection(options) {
  const [host, port] = baton.amqp.split(":");
  return rhea.create_container().connect({ host, port, reconnect: false, ...options });
}
const closed = (on) => new Promise((resolve) => {
  on.on("connection_close", ({ connection: { error } }) => resolve(error?.condition));
  on.on("connection_error", ({ connection: { error } }) => resolve(error?.condition));
  on.on("disconnected", () => resolve("disconnected"));
});

describe("a client of plain AMQP", () => {
  it("shows a token as its password", async () => {
    const worker = key("--role", "worker");
    const good = connection({ username: "any", password: worker.token });
    await baton.http("POST", "/jobs", { workflow_id: "w", input_data: {} });
    const got = new Promise((resolve) => good.on("message", ({ message }) => resolve(message)));
    good.open_receiver("q");
    assert.equal((await got).application_properties.FunctionName, "H");
    good.close();
  });

  it("is sent away with a wrong one", async () => {
    assert.equal(await closed(connection({ username: "any", password: "guess" })), "amqp:unauthorized-access");
  });

  it("that shows nothing attaches to nothing", async () => {
    const nobody = connection({ username: "anonymous" });
    const refused = new Promise((resolve) => nobody.on("receiver_error", ({ receiver }) => resolve(receiver.error.condition)));
    nobody.open_receiver("q");
    assert.equal(await refused, "amqp:unauthorized-access");
    nobody.close();
  });

  const put = (client, { token_id: id, shared_access_key: secret }, entity, expiry = Math.floor(Date.now() / 1000) + 600) => {
    const resource = encodeURIComponent(`sb://localhost/${entity}`);
    const signature = createHmac("sha256", secret).update(`${resource}\n${expiry}`).digest("base64");
    const answer = new Promise((resolve) => client.once("message", ({ message }) => resolve(message.application_properties)));
    client.cbs ??= [client.open_receiver({ source: "$cbs", target: "me" }), client.open_sender("$cbs")];
    client.cbs[1].send({
      message_id: "1", reply_to: "me", body: `SharedAccessSignature sr=${resource}&sig=${encodeURIComponent(signature)}&se=${expiry}&skn=${id}`,
      application_properties: { operation: "put-token", type: "servicebus.windows.net:sastoken", name: `sb://localhost/${entity}` },
    });
    return answer;
  };
  const attach = (client, address) => new Promise((resolve) => {
    client.once("receiver_error", ({ receiver }) => resolve(receiver.error.condition));
    const receiver = client.open_receiver({ source: address, credit_window: 0 });
    receiver.once("receiver_open", () => setTimeout(() => resolve("open"), 100));
  });

  it("with a signature for one queue uses that one", async () => {
    const client = connection({ username: "anonymous" });
    assert.equal((await put(client, key("--role", "worker", "--bus"), "q"))["status-code"], 202);
    assert.equal(await attach(client, "q"), "open");
    assert.equal(await attach(client, "q/$management"), "open");
    assert.equal(await attach(client, "q2"), "amqp:unauthorized-access");
    client.close();
  });

  it("does not become another one", async () => {
    const client = connection({ username: "anonymous" });
    assert.equal((await put(client, key("--role", "viewer", "--bus"), ""))["status-code"], 202);
    assert.equal(await attach(client, "q/$management"), "amqp:unauthorized-access");
    assert.equal((await put(client, key("--role", "admin", "--bus"), ""))["status-code"], 401);
    client.close();
  });

  it("loses what its signature was for when that expires, and no more", async () => {
    const client = connection({ username: "anonymous" });
    const worker = key("--role", "worker", "--bus"), soon = Math.floor(Date.now() / 1000) + 2;
    await put(client, worker, "functionapp-tasks");
    await put(client, worker, "q", soon);
    const kept = client.open_receiver({ source: "functionapp-tasks", credit_window: 0 });
    assert.equal(await attach(client, "q"), "open");
    const ended = new Promise((resolve) => client.once("receiver_error", ({ receiver }) => resolve(receiver.error.condition)));
    assert.equal(await ended, "amqp:unauthorized-access");
    assert.equal(await attach(client, "q"), "amqp:unauthorized-access");
    assert.equal((await put(client, worker, "q"))["status-code"], 202);
    assert.equal(await attach(client, "q"), "open");
    assert.ok(kept.is_open());
    client.close();
  });

  it("with a signature that has expired is told so", async () => {
    const client = connection({ username: "anonymous" });
    const expired = Math.floor(Date.now() / 1000) - 10;
    const { "status-code": status, "status-description": why } = await put(client, key("--role", "worker", "--bus"), "q", expired);
    assert.equal(status, 401);
    assert.match(why, /expired/);
    client.close();
  });
});
