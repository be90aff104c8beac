// Peer: Node's child_process.execFile, buffers, no limit.
"use strict";
const { execFile } = require("node:child_process");
const { readFileSync } = require("node:fs");

const BLOCK = 4096;
const [child, ...args] = process.argv.slice(2);
const [streams, size] = args.map(Number);

function verify(data, expected, first) {
  if (data.length !== expected) throw new Error(`wrong length: ${data.length}, not ${expected}`);
  for (let at = 0; at < expected; at += BLOCK) {
    if (data.readUIntLE(at, 6) !== first + at / BLOCK) throw new Error("wrong bytes");
  }
}

const started = process.hrtime.bigint();
execFile(child, args, { encoding: "buffer", maxBuffer: Infinity }, (error, out, err) => {
  if (error) throw error;
  const seconds = Number(process.hrtime.bigint() - started) / 1e9;
  const peak = Number(/^VmHWM:\s+(\d+)/m.exec(readFileSync("/proc/self/status", "utf8"))[1]);
  verify(out, size, 0);
  verify(err, streams === 2 ? size : 0, 2 ** 32);
  console.log(JSON.stringify({ seconds, peak_rss_kb: peak, bytes_out: out.length, bytes_err: err.length }));
});
