// Pipelines by execa: node pipelines.mjs MODULE COUNT JSON, which is a list of lists of words.
import { performance } from "node:perf_hooks";
const [module, count, json] = process.argv.slice(2);
const { execa } = await import(module);
const stages = JSON.parse(json);
const started = performance.now();
for (let left = Number(count); left > 0; left--) {
  const last = stages.length - 1;
  const options = (place) => ({
    stdin: place === 0 ? "ignore" : "pipe",
    stdout: place === last ? "ignore" : "pipe",
    stderr: "inherit",
    buffer: false,
  });
  const children = stages.map(([program, ...words], place) => execa(program, words, options(place)));
  let joined = children[0];
  for (const next of children.slice(1)) joined = joined.pipe(next);
  await joined;
}
console.log(((performance.now() - started) / 1000).toFixed(6));
