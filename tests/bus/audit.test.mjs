// A short audit of kills: a plain queue, workers and a scheduler at once. bench/bus/kills.mjs does the same fifty times.
import assert from "node:assert/strict";
import { killOften, LockTraffic, QueueTraffic } from "./audit.mjs";
import { Baton } from "./baton.mjs";
import { JobTraffic } from "./job_traffic.mjs";
import { printVerdict } from "./ledger.mjs";
import { PatientAzureBus } from "./traffic.mjs";
import { after, before, it } from "./testing.mjs";

let baton;
before(async () => { baton = await Baton.start("--scheduler", "off", "--bus-lock-seconds", "5", "--lease-seconds", "5"); });
after(() => baton.stop());

it("loses no message, keeps locks and repeats nothing without a reason when it is killed", { timeout: 120_000 }, async (test) => {
  const plain = new QueueTraffic(baton, "plain", { messages: 1_500, lockSeconds: 5 });
  const once = new QueueTraffic(baton, "once", { messages: 500, lockSeconds: 5, detectsDuplicates: true });
  const locks = new LockTraffic(baton, "locks", { lockSeconds: 5 });
  const jobs = await new JobTraffic(baton, new PatientAzureBus(baton), 60).start();
  try {
    const inFlight = await killOften(baton, 4, [plain, once], locks);
    test.diagnostic(`messages under way at the kills: ${inFlight}`);
    assert.ok(inFlight.some((count) => count > 0));
    const found = { plain: await plain.finish(30), once: await once.finish(30), locks: await locks.finish(30), jobs: await jobs.finish() };
    for (const [title, verdict] of Object.entries(found)) printVerdict(title, verdict, (line) => test.diagnostic(line));
    for (const { violations } of Object.values(found)) assert.deepEqual(violations, []);
    assert.ok(found.locks.totals["locks held over a kill"] > 0);
  } finally { await Promise.all([plain.close(), once.close(), jobs.close()]); }
});
