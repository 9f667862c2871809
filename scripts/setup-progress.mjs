/** Shows a person that work goes on: a spinner on a terminal, else a line every few seconds. */
const frames = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
const frameMs = 100;
const lineMs = 5_000;

/** Returns the function that ends it. */
export function showProgress(what, stream = process.stderr) {
  const start = Date.now();
  const seconds = () => Math.round((Date.now() - start) / 1000);
  if (!stream.isTTY) {
    const timer = setInterval(() => stream.write(`${what}, ${seconds()} s\n`), lineMs);
    return () => clearInterval(timer);
  }
  let turn = 0;
  const draw = () => {
    turn = (turn + 1) % frames.length;
    stream.write(`\r${frames[turn]} ${what}, ${seconds()} s\u001B[K`);
  };
  draw();
  const timer = setInterval(draw, frameMs);
  return () => {
    clearInterval(timer);
    stream.write('\r\u001B[K');
  };
}
