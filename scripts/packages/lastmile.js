#!/usr/bin/env node
// Starts the program in the package of this platform, and ends as the program ends.
"use strict";
const { spawn } = require("node:child_process");
const { name, optionalDependencies } = require("../package.json");

const platform = `${name}-${process.platform}-${process.arch}`;

function program() {
  try {
    return require.resolve(`${platform}/bin/lastmile`);
  } catch {
    const known = Object.keys(optionalDependencies);
    const remedy = known.includes(platform)
      ? "install lastmile again, without --omit=optional"
      : `there are only ${known.join(" and ")}, for Linux with glibc`;
    console.error(`lastmile: the package ${platform} is not installed: ${remedy}`);
    process.exit(1);
  }
}

const child = spawn(program(), process.argv.slice(2), { stdio: "inherit" });
child.on("error", (error) => {
  console.error(`lastmile: the program does not start: ${error.message}`);
  process.exit(1);
});
// A terminal sends SIGINT to the program too, so it is not passed on a second time.
process.on("SIGINT", () => {});
for (const signal of ["SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
child.on("exit", (code, signal) => {
  if (signal === null) process.exit(code);
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});
