/** Takes the build lock of a file, says so, and holds it until it is killed. */
import { takeBuildLock } from '../../packages/host/images/build-lock.ts';

await takeBuildLock(process.argv[2] ?? '', () => {});
console.log('held');
setInterval(() => {}, 60_000);
