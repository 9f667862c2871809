/** Opens the Incus of a data folder with one running guest, says so, and holds it until it is killed. */
import { openIncus } from '../../packages/host/engine/incus/open.ts';
import { live, specOf } from './engine-suite.ts';
import { tinyImage } from './tiny-image.ts';

const [dataDir = '', id = ''] = process.argv.slice(2);
const { engine, daemon } = await openIncus(live, { dataDir, say: () => {}, largestPoolGib: 10 });
const { digest, files } = await tinyImage();
await engine.importImage(live, digest, files);
await engine.create(live, specOf(id), digest);
await engine.start(live, id);
console.log(daemon?.pid);
setInterval(() => {}, 60_000);
