/** Makes an image in a cache folder by a recipe and tells each stage, until it is killed. */
import { ensureBaseImage } from '../../packages/host/images/build.ts';

const [cacheDir, recipe] = process.argv.slice(2);
let told = '';
await ensureBaseImage({
  cacheDir,
  recipe,
  say() {},
  progress({ stage }) {
    if (stage !== told) console.log(stage);
    told = stage;
  },
});
