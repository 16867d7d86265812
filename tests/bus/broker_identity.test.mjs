// Baton as a client of a namespace that it has no key of: tokens of a managed identity, and of an application with a secret.
import assert from "node:assert/strict";
import { Baton, until } from "./baton.mjs";
import { Certificate, ServiceBus, TokenEndpoint } from "./service_bus.mjs";
import { after, afterEach, before, describe, it } from "./testing.mjs";

const workflow = "workflow_id: w\nnodes:\n  start: {type: start, next: [t]}\n" +
  "  t: {type: task, handler: H, queue: tasks, next: [end]}\n  end: {type: end}\n";
const results = "worker-results/Subscriptions/orchestrator";
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const metric = async (baton, name) => Number((await (await fetch(`${baton.url}/metrics`)).text()).match(new RegExp(`^${name} (\\d+)`, "m"))?.[1]);

describe("a namespace without a key", () => {
  let certificate, endpoint, azure, baton;
  before(() => { certificate = new Certificate(); });
  after(() => { certificate.remove(); });
  afterEach(async () => { await baton?.stop(); azure.close(); endpoint.close(); });

  // Of another's environment nothing counts here.
  const nobody = { AZURE_CLIENT_ID: "", AZURE_TENANT_ID: "", AZURE_CLIENT_SECRET: "", IDENTITY_ENDPOINT: "", IDENTITY_HEADER: "" };
  const start = async (environment) => {
    baton = new Baton();
    baton.environment = { ...nobody, BATON_BUS_NAMESPACE: `localhost:${azure.port}`, BATON_BUS_TOKEN_ENDPOINT: endpoint.url(), BATON_BUS_CA: certificate.file,
      BATON_BUS_QUEUES: "tasks", ...environment };
    await baton.start();
  };
  const setUp = async (lasts) => {
    endpoint = await new TokenEndpoint().listen();
    endpoint.lasts = lasts;
    azure = await new ServiceBus({ certificate, tokenEndpoint: endpoint }).listen();
  };
  const connected = () => until("the connection", async () => (await metric(baton, "baton_broker_connected")) === 1);
  const runJob = async () => {
    await baton.http("POST", "/workflows", workflow, "application/yaml");
    const before = azure.sent.get("tasks")?.length ?? 0;
    const { job_id } = await baton.http("POST", "/jobs", { workflow_id: "w", input_data: {} });
    const message = await until("the task", () => azure.sent.get("tasks")?.[before]);
    await until("the subscription", () => azure.receivers.get(results)?.sendable());
    azure.say(results, { task_id: JSON.parse(message.body.content).task_id, status: "completed" });
    assert.equal((await baton.http("GET", `/jobs/${job_id}?wait_ms=5000`)).status, "COMPLETED");
  };

  it("is shown tokens of a managed identity, each before the one before has expired", async () => {
    await setUp(4);
    await start({ BATON_BUS_CLIENT_ID: "which" });
    await runJob();
    const [request] = endpoint.requests;
    assert.equal(request.headers.metadata, "true");
    assert.deepEqual(request.query, { "api-version": "2018-02-01", resource: "https://servicebus.azure.net/", client_id: "which" });
    await until("four tokens", () => new Set(azure.put).size >= 4, 20);
    await runJob();
    assert.equal(azure.connections, 1, baton.log);
    assert.equal(new Set(azure.put).size * 3, azure.put.length);  // one queue, two subscriptions
  });

  it("ends the links for tokens while they are idle, and is shown the next token over others", async () => {
    await setUp(4);
    await start({});
    await connected();
    azure.answers.close({ condition: "amqp:link:detach-forced", description: "idle" });
    await until("another token", () => new Set(azure.put).size >= 3, 20);
    await runJob();
    assert.equal(azure.connections, 1, baton.log);
  });

  it("is asked for links when it has answered to all tokens, however often it does", async () => {
    await setUp(3600);
    azure.repeats = true;
    await start({});
    await runJob();
    assert.ok(!baton.log.includes("the broker ended the link"), baton.log);
  });

  it("is shown tokens of an application, by the names that Azure has", async () => {
    await setUp(3600);
    await start({ AZURE_CLIENT_ID: "app", AZURE_TENANT_ID: "the-tenant", AZURE_CLIENT_SECRET: endpoint.secret });
    await runJob();
    assert.deepEqual(endpoint.requests.map(({ form }) => form), [{ client_id: "app", client_secret: endpoint.secret, grant_type: "client_credentials",
      scope: "https://servicebus.azure.net/.default" }]);
  });

  it("is told nothing by who has a wrong secret, and the log has the reason without it", async () => {
    await setUp(3600);
    await start({ BATON_BUS_IDENTITY: "client_secret", BATON_BUS_CLIENT_ID: "app", BATON_BUS_TENANT_ID: "the-tenant", BATON_BUS_CLIENT_SECRET: "not+the=secret" });
    await until("some tries", () => endpoint.requests.length >= 3);
    assert.equal(azure.connections, 0);
    assert.match(baton.log, /the token endpoint answers 401: invalid_client: Invalid client secret provided: \*\*\* Trace ID: 1; trying again/);
    assert.equal(baton.log.match(/answers 401/g).length, 1);
    assert.ok(!baton.log.includes("not+the=secret"));
    const gaps = endpoint.requests.length;
    await pause(1000);
    assert.ok(endpoint.requests.length <= gaps + 1, "the pauses grow");
    endpoint.secret = "not+the=secret";
    await connected();
  });

  it("is found when the token endpoint is, and kept while that is away", async () => {
    await setUp(12);
    const { port } = endpoint;
    endpoint.close();
    await start({});
    await until("the trouble", () => /no connection to the broker.*the token endpoint: /.test(baton.log));
    await endpoint.listen(port);
    await runJob();
    endpoint.close();
    await until("the trouble again", () => /the token for the broker is not renewed: the token endpoint: /.test(baton.log), 20);
    await runJob();
    await endpoint.listen(port);
    await until("another token", () => new Set(azure.put).size === 2);
    await runJob();
    assert.equal(azure.connections, 1, baton.log);
  });

  it("is asked with another token after it refused one", async () => {
    await setUp(3600);
    await start({});
    await connected();
    endpoint.issued.clear();
    azure.tokens.clear();
    azure.connection.close({ condition: "amqp:connection:forced" });
    await until("the refusal", () => /it does not take the token of the identity: 401/.test(baton.log));
    await connected();
    assert.equal(endpoint.requests.length, 2);
  });
});
