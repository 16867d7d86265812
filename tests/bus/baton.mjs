// A real server for a test: started on free ports with a directory of its own, and gone with the test.
import { execFile, spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { ServiceBusAdministrationClient, ServiceBusClient } from "@azure/service-bus";

export const binary = process.env.BATON_BINARY ?? join(import.meta.dirname ?? ".", "../../build/release/baton");

// A test that fails in the middle may leave a server behind, which keeps its file from ending, and with it the whole suite.
const servers = new Set();
process.on("exit", () => { for (const server of servers) server.kill("SIGKILL"); });
setTimeout(() => {
  console.error("this file of tests has not ended in 400 seconds");
  process.exit(1);
}, 400_000).unref();

export class Baton {
  constructor() {
    this.data = mkdtempSync(join(tmpdir(), "baton-bus-"));
    this.clients = [];
    this.workers = [];
    this.environment = {};  // beside that of the test
    this.log = "";
    this.logLevel = "warn";
  }

  static async start(...options) {
    const baton = new Baton();
    await baton.start(...options);
    return baton;
  }

  async start(...options) {
    this.options = options;
    // Where it was before, so that clients find it again.
    const listen = this.url ? new URL(this.url).host : "127.0.0.1:0";
    const amqp = this.amqp ?? "127.0.0.1:0", admin = this.admin ?? "127.0.0.1:0";
    this.process = spawn(binary, ["serve", "--data", this.data, "--listen", listen, "--amqp", amqp, "--amqp-admin", admin, "--log-level", this.logLevel, ...options],
      { stdio: ["ignore", "pipe", "pipe"], env: { ...process.env, ...this.environment } });
    const server = this.process;
    servers.add(server);
    server.once("exit", () => servers.delete(server));
    this.process.stderr.on("data", (text) => { this.log += text; process.stderr.write(text); });
    const lines = createInterface({ input: this.process.stdout })[Symbol.asyncIterator]();
    this.url = (await lines.next()).value;
    this.amqp = (await lines.next()).value?.replace("amqp://", "");
    this.admin = (await lines.next()).value?.replace("amqp-admin://", "");
    if (!this.admin) throw new Error("baton did not start");
  }

  async kill(signal = "SIGKILL") {
    const gone = new Promise((resolve) => this.process.once("exit", resolve));
    this.process.kill(signal);
    await gone;
  }

  async stop() {
    for (const client of this.clients) await client.close().catch(() => {});
    for (const worker of this.workers) await worker.stop();
    if (this.process.exitCode === null && this.process.signalCode === null) await this.kill("SIGTERM");
    rmSync(this.data, { recursive: true, force: true });
  }

  connectionString(name = "any", key = "any") {
    return `Endpoint=sb://${this.amqp};SharedAccessKeyName=${name};SharedAccessKey=${key};UseDevelopmentEmulator=true;`;
  }

  client(connection = this.connectionString(), retries = 0) {
    const client = new ServiceBusClient(connection, { retryOptions: { maxRetries: retries, retryDelayInMs: 100, maxRetryDelayInMs: 500, timeoutInMs: 5000 } });
    this.clients.push(client);
    return client;
  }

  // The SDK manages over https only: a policy sends its requests to where baton is instead. What they sign stays.
  administration(name = "any", key = "any") {
    const client = new ServiceBusAdministrationClient(`Endpoint=sb://${this.admin};SharedAccessKeyName=${name};SharedAccessKey=${key}`, { retryOptions: { maxRetries: 0 } });
    const plain = { name: "plain", sendRequest: (request, next) => {
      request.url = request.url.replace("https:", "http:");
      request.allowInsecureConnection = true;
      return next(request);
    } };
    client.pipeline.addPolicy(plain, { afterPhase: "Sign" });
    return client;
  }

  async http(method, path, body, type = "application/json") {
    const headers = { "Content-Type": type };
    if (this.token) headers.Authorization = `Bearer ${this.token}`;
    const response = await fetch(`${this.url}/api/v1${path}`, { method, headers, body: typeof body === "object" ? JSON.stringify(body) : body });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return text ? JSON.parse(text) : null;
  }

  // A queue, a topic, or a subscription as "topic/Subscriptions/name".
  make(type, path, settings = {}) { return this.http("POST", "/bus/entities", { type, path, ...settings }); }

  command(...options) {
    const done = spawnSync(binary, [...options, "--data", this.data], { encoding: "utf8" });
    if (done.status !== 0) throw new Error(done.stderr);
    return done.stdout.trim();
  }

  // `baton bus …` at this server: makes, shows and deletes queues, topics and subscriptions.
  bus(...options) {
    const done = spawnSync(binary, ["bus", ...options, "--server", this.url], { encoding: "utf8", env: { ...process.env, ...(this.token && { BATON_TOKEN: this.token }) } });
    if (done.status !== 0) throw new Error(`baton bus ${options.join(" ")}: ${done.stderr}`);
    return done.stdout.trim();
  }

  // `baton worker …` at this server, until it is stopped.
  worker(...options) {
    const worker = spawn(binary, ["worker", "--server", this.url, "--quiet", ...options], { stdio: ["ignore", "ignore", "inherit"] });
    const gone = new Promise((resolve) => worker.once("exit", resolve));
    const stop = () => {
      worker.kill("SIGTERM");
      return gone;
    };
    this.workers.push({ stop });
    return this.workers.at(-1);
  }

  // What it says beside its answer.
  busSaid(...options) { return spawnSync(binary, ["bus", ...options, "--server", this.url], { encoding: "utf8" }).stderr; }

  // The same while the test goes on.
  async busBeside(...options) {
    const { stdout } = await promisify(execFile)(binary, ["bus", ...options, "--server", this.url]);
    return stdout.trim();
  }

  // As another program does, beside the server. Answers the rows.
  sql(statement) {
    const program = "import json,sqlite3,sys\nc=sqlite3.connect(sys.argv[1],timeout=30)\n" +
      "r=c.execute(sys.argv[2]).fetchall()\nc.commit()\nprint(json.dumps(r))";
    const done = spawnSync("python3", ["-c", program, join(this.data, "baton.db"), statement], { encoding: "utf8" });
    if (done.status !== 0) throw new Error(`${statement}: ${done.stderr}`);
    return JSON.parse(done.stdout);
  }

  // Answers its id.
  insert(table, row) { return this.insertAll(table, [row])[0]; }

  // Rows with the same columns; answers their ids.
  insertAll(table, rows) {
    const value = (cell) => typeof cell === "string" ? `'${cell.replaceAll("'", "''")}'` : `${Number(cell)}`;
    const values = rows.map((row) => `(${Object.values(row).map(value)})`);
    return this.sql(`INSERT INTO ${table} (${Object.keys(rows[0])}) VALUES ${values} RETURNING id`).map(([id]) => id);
  }
}

export async function until(what, condition, seconds = 15) {
  const end = Date.now() + seconds * 1000;
  for (;;) {
    const found = await condition();
    if (found) return found;
    if (Date.now() > end) throw new Error(`not within ${seconds} s: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

// What a call is refused with.
export async function refusal(promise) {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error("it was not refused");
}
