// `npm run bench -- NAME`: measures, and prints one JSON object as its last line.

const benches: Record<string, () => Promise<void>> = {
  door: async () => (await import('./door/bench.ts')).run(),
  computers: async () => (await import('./computers/bench.ts')).run(),
  desktop: async () => (await import('./desktop/bench.ts')).run(),
  builds: async () => (await import('./builds/bench.ts')).run(),
  webhooks: async () => (await import('./webhooks/bench.ts')).run(),
};

const name = process.argv[2] ?? '';
const bench = Object.hasOwn(benches, name) ? benches[name] : undefined;
if (bench === undefined) {
  console.error(`Name a bench: ${Object.keys(benches).join(', ')}.`);
  process.exitCode = 1;
} else {
  await bench();
}
