// The worker of Restate: what one of its users would write. Each task is a `ctx.run`, a step whose result is durable before the next
// one begins. It serves HTTP/2 on a port of the loopback interface that the system chooses, and prints the port.
//
//   node restate_worker.mjs MODULES      (the folder that holds node_modules)
import http2 from "node:http2";
import { createRequire } from "node:module";

const { createEndpointHandler, service } = createRequire(`${process.argv[2]}/`)("@restatedev/restate-sdk");

const echo = service({
  name: "echo",
  handlers: {
    one: async (ctx, input) => ctx.run("echo_1", () => input),
    three: async (ctx, input) => {
      const first = await ctx.run("echo_1", () => input);
      const second = await ctx.run("echo_2", () => first);
      return ctx.run("echo_3", () => second);
    },
  },
});

const server = http2.createServer(createEndpointHandler({ services: [echo] }));
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
