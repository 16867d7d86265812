// A server of baton for as long as the example runs: on free ports, with its data in a temporary directory.
import { execFile, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";

const binary = process.env.BATON;

export async function startServer() {
  const data = mkdtempSync(join(tmpdir(), "baton-example-"));
  const server = spawn(binary, ["serve", "--data", data, "--listen", "127.0.0.1:0", "--amqp", "127.0.0.1:0", "--log-level", "warn"],
    { stdio: ["ignore", "pipe", "inherit"], detached: true });  // so that Ctrl-C does not reach it before us
  const gone = new Promise((resolve) => server.once("close", resolve));
  const stop = async () => {
    server.kill("SIGTERM");
    await gone;
    rmSync(data, { recursive: true, force: true });
  };
  for (const [signal, code] of [["SIGINT", 130], ["SIGTERM", 143]])
    process.once(signal, async () => { await stop(); process.exit(code); });

  const lines = createInterface({ input: server.stdout })[Symbol.asyncIterator]();
  const url = (await lines.next()).value;  // http://127.0.0.1:…
  const amqp = (await lines.next()).value?.replace("amqp://", "sb://");
  if (!amqp) {
    await stop();
    throw new Error("the server did not start");
  }
  return { url, stop, connectionString: `Endpoint=${amqp};SharedAccessKeyName=any;SharedAccessKey=any;UseDevelopmentEmulator=true;` };
}

// A command of baton, as it would be typed. Answers what it prints.
export async function baton(url, ...words) {
  return (await promisify(execFile)(binary, [...words, "--server", url], { cwd: import.meta.dirname })).stdout.trim();
}
