// docs/guide/service-bus.md: whoever follows it from nothing to a worker sees what it shows. Files, programs and commands are taken from there.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { after, before, describe, it } from "node:test";
import { Baton, binary, until } from "./baton.mjs";

const guide = readFileSync(join(import.meta.dirname, "../../docs/guide/service-bus.md"), "utf8");
const section = (title) => guide.split(/^(?=#+ )/m).find((part) => part.replace(/^#+ /, "").startsWith(`${title}\n`));
const blocks = (part, language) => [...part.matchAll(new RegExp(`^\`\`\`${language}\n([^]*?)^\`\`\``, "gm"))].map(([, text]) => text);
const environment = (baton) => ({ PATH: `${dirname(resolve(binary))}:${process.env.PATH}`, HOME: process.env.HOME, BATON_SERVER: baton.url, SERVICE_BUS: baton.connectionString() });

// What is typed there, and what is shown for it.
const commands = (part) => blocks(part, "console").join("").split(/^\$ /m).slice(1).map((text) => {
  const [typed, ...shown] = text.split("\n");
  return { typed, shown: shown.join("\n").trim() };
});

describe("the guide", () => {
  let baton, folder;
  const running = [];
  before(async () => {
    baton = await Baton.start();
    folder = mkdtempSync(join(tmpdir(), "baton-guide-"));
    symlinkSync(join(import.meta.dirname, "node_modules"), join(folder, "node_modules"));
  });
  after(async () => {
    for (const { program, gone } of running) {
      program.kill("SIGKILL");
      await gone;
    }
    await baton.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  // Its end with what it said on standard output; without one for a program that is to go on (`… &`).
  async function type(typed) {
    const isBeside = typed.endsWith("&");
    const program = spawn("sh", ["-c", isBeside ? `exec ${typed.slice(0, -1)}` : typed], { cwd: folder, env: environment(baton), stdio: ["ignore", "pipe", "pipe"] });
    let out = "", err = "";
    program.stdout.on("data", (text) => { out += text; });
    program.stderr.on("data", (text) => { err += text; });
    const gone = new Promise((resolve) => program.once("close", resolve));
    running.push({ program, gone });
    if (isBeside) return undefined;
    assert.equal(await gone, 0, `${typed}: ${err}`);
    return out.trim();
  }

  async function follow(title, files) {
    const part = section(title);
    for (const [name, language] of Object.entries(files)) writeFileSync(join(folder, name), blocks(part, language)[0]);
    for (const { typed, shown } of commands(part)) {
      // What goes on in the background may not be through yet, and a table has times in it.
      const expected = shown.replace(/^…\n/, "");
      const shows = (out) => out === undefined || (shown.startsWith("…") ? out.replaceAll(/ +/g, " ").includes(expected.replaceAll(/ +/g, " ")) : out === expected);
      let out;
      if (shown.startsWith("…")) await until(typed, async () => shows(out = await type(typed))).catch(() => {});
      else out = await type(typed);
      assert.ok(shows(out), `${typed}\nshows\n${out}\nand not\n${expected}`);
    }
  }

  it("leads from nothing to a task that is done", { timeout: 60_000 }, () =>
    follow("From nothing to a task that is done", { "greeting.yaml": "yaml", "worker.mjs": "js" }));

  it("leads to a batch of a runbook that is done", { timeout: 60_000 }, () =>
    follow("Jobs of runbooks", { "users.yaml": "yaml", "users.csv": "csv", "users.mjs": "js" }));
});
