// examples/service-bus runs with one command and says what its README shows.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { it } from "node:test";
import { promisify } from "node:util";
import { binary } from "./baton.mjs";

const example = join(import.meta.dirname, "../../examples/service-bus");

const withoutTimes = (text) => text.trim().replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "TIME");

it("the example of the guide ends well, and says what it should", { timeout: 120_000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), "baton-example-test-"));
  try {
    // Elsewhere, with the SDK that is installed here.
    const copy = join(folder, "service-bus"), temporary = join(folder, "tmp");
    cpSync(example, copy, { recursive: true, filter: (path) => !path.includes("node_modules") });
    symlinkSync(join(import.meta.dirname, "node_modules"), join(copy, "node_modules"));
    mkdirSync(temporary);
    const env = { PATH: process.env.PATH, HOME: folder, TMPDIR: temporary, BATON: resolve(binary) };
    const { stdout } = await promisify(execFile)(join(copy, "run"), { env, timeout: 60_000 });  // which throws unless it ends with 0
    const [, shown] = readFileSync(join(example, "README.md"), "utf8").match(/```console\n\$ examples\/service-bus\/run[^\n]*\n([^]*?)```/);
    assert.equal(withoutTimes(stdout), withoutTimes(shown));
    assert.deepEqual(readdirSync(temporary), []);
  } finally { rmSync(folder, { recursive: true, force: true }); }
});
