// A real RabbitMQ for a test, from Debian's package: on free ports, in a directory of its own, with the exchanges and queues of a site.
import { spawn, spawnSync } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { until } from "./baton.mjs";

const rhea = createRequire(import.meta.url)("rhea");

async function freePort() {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

// Topics are exchanges, a subscription is a queue TOPIC.SUBSCRIPTION.
function definitions(user, password, queues) {
  const salt = randomBytes(4);
  const hash = Buffer.concat([salt, createHash("sha256").update(salt).update(password).digest()]).toString("base64");
  const queue = (name) => ({ name, vhost: "/", durable: true, auto_delete: false, arguments: {} });
  const topic = (name, type) => ({ name, vhost: "/", type, durable: true, auto_delete: false, internal: false, arguments: {} });
  const bind = (source, destination, key) => ({ source, vhost: "/", destination, destination_type: "queue", routing_key: key, arguments: {} });
  const dead = { "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead" };
  return {
    users: [{ name: user, password_hash: hash, hashing_algorithm: "rabbit_password_hashing_sha256", tags: ["administrator"] }],
    vhosts: [{ name: "/" }],
    permissions: [{ user, vhost: "/", configure: ".*", write: ".*", read: ".*" }],
    exchanges: [topic("worker-jobs", "direct"), topic("worker-results", "fanout"), topic("orchestrator-events", "fanout")],
    queues: [queue("worker-jobs.worker-pool"), { ...queue("worker-results.orchestrator"), arguments: dead }, queue("orchestrator-events.orchestrator"),
      queue("tasks"), queue("dead"), ...queues.map(queue)],
    bindings: [bind("worker-jobs", "worker-jobs.worker-pool", "pool"), bind("worker-results", "worker-results.orchestrator", ""),
      bind("orchestrator-events", "orchestrator-events.orchestrator", "")],
  };
}

export class Rabbit {
  // A test shares its machine with others, so that one scheduler of Erlang is enough; who measures it lets it have all cores.
  static async start({ queues = [], erlang = "+S 1:1" } = {}) {
    const rabbit = new Rabbit();
    rabbit.folder = mkdtempSync(join(tmpdir(), "baton-rabbit-"));
    for (const part of ["mnesia", "log"]) mkdirSync(join(rabbit.folder, part));
    rabbit.port = await freePort();
    const write = (name, text) => (writeFileSync(join(rabbit.folder, name), text), join(rabbit.folder, name));
    rabbit.env = {
      PATH: process.env.PATH, HOME: rabbit.folder, LANG: "C.UTF-8",
      RABBITMQ_NODENAME: `baton-${process.pid}-${rabbit.port}@localhost`, RABBITMQ_NODE_IP_ADDRESS: "127.0.0.1", RABBITMQ_NODE_PORT: String(rabbit.port),
      RABBITMQ_DIST_PORT: String(await freePort()), ERL_EPMD_PORT: String(await freePort()), ERL_EPMD_ADDRESS: "127.0.0.1",
      ERL_EPMD_RELAXED_COMMAND_CHECK: "1",  // else it does not end while it still knows the server that was killed
      RABBITMQ_MNESIA_BASE: join(rabbit.folder, "mnesia"), RABBITMQ_LOG_BASE: join(rabbit.folder, "log"), RABBITMQ_PID_FILE: join(rabbit.folder, "pid"),
      RABBITMQ_ENABLED_PLUGINS_FILE: write("plugins", "[rabbitmq_amqp1_0].\n"), RABBITMQ_CONF_ENV_FILE: write("env", ""),
      RABBITMQ_CONFIG_FILE: write("rabbit.conf", `load_definitions = ${join(rabbit.folder, "definitions.json")}\n`),
      RABBITMQ_GENERATED_CONFIG_DIR: rabbit.folder, RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS: erlang,
    };
    write("definitions.json", JSON.stringify(definitions("site", "secret", queues)));
    await rabbit.start();
    return rabbit;
  }

  url = () => `amqp://site:secret@127.0.0.1:${this.port}`;

  async start() {
    this.process = spawn("/usr/lib/rabbitmq/bin/rabbitmq-server", { env: this.env, detached: true, stdio: "ignore" });
    await until("RabbitMQ", async () => {
      const connection = this.connect({ reconnect: false });
      const opened = await new Promise((resolve) => {
        connection.once("connection_open", () => resolve(true));
        for (const failed of ["disconnected", "connection_error"]) connection.once(failed, () => resolve(false));
      });
      connection.close();
      return opened || new Promise((resolve) => setTimeout(() => resolve(false), 200));
    }, 60);
  }

  connect(options = {}) {
    const connection = rhea.create_container().connect({ host: "127.0.0.1", port: this.port, username: "site", password: "secret", ...options });
    for (const event of ["disconnected", "connection_error", "error"]) connection.on(event, () => {});
    return connection;
  }

  kill() {
    const gone = new Promise((resolve) => this.process.once("exit", resolve));
    process.kill(-this.process.pid, "SIGKILL");
    return gone;
  }

  async stop() {
    await this.kill();
    spawnSync("epmd", ["-kill"], { env: this.env });
    rmSync(this.folder, { recursive: true, force: true });
  }
}
