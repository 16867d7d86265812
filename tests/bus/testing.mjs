// What node:test has, with an end: a test or a hook that waits for what never comes fails under its name.
import * as node from "node:test";

const timeout = 120_000;

export const { describe } = node;
export const it = (name, ...rest) => {
  const body = rest.pop();
  return node.it(name, { timeout, ...rest[0] }, body);
};
export const before = (body) => node.before(body, { timeout });
export const after = (body) => node.after(body, { timeout });
export const afterEach = (body) => node.afterEach(body, { timeout });
