// Pages that a Chromium in a computer is shown.

/** What is called `unseen` must not be told, nor what is typed as a password. */
export const usualPage = `<!doctype html>
<meta charset="utf-8">
<title>Usual</title>
<style>
  body { margin: 8px; font: 14px sans-serif }
  .masked { -webkit-text-security: disc }
  #cover { position: relative }
  #cover div { position: absolute; inset: 0; background: white }
</style>
<h1>A usual <b>page</b></h1>
<p><a href="#away">Away</a> <button onclick="document.title = 'hit Push'">Push</button>
<p><label>Your name <input value="Ada"></label>
<p><label>Secret <input type="password" value="hunter2"></label>
  <label>Shown secret <input autocomplete="current-password" value="sesame"></label>
<p><label><input type="checkbox" checked> Agreed</label>
  <label>Colour <select><option>red<option selected>green</select></label>
<p><div role="button" onclick="document.title = 'hit Role'" style="width: 90px">Role</div>
<div contenteditable aria-label="Notes">Dear diary</div>
<div hidden><button>unseen by attribute</button></div>
<button style="visibility: hidden">unseen by style</button>
<div id="cover"><button>unseen under another</button><div></div></div>
<div class="masked" role="button" style="display: none">unseen</div>
<section id="host"></section>
<iframe srcdoc="<button onclick=&quot;parent.document.title = 'hit Inner'&quot;>Inner</button>"
  style="width: 200px; height: 50px; border: 3px solid; padding: 5px"></iframe>
<button style="position: absolute; top: 3000px">unseen below</button>
<script>
  const shadow = document.getElementById('host').attachShadow({ mode: 'open' });
  shadow.innerHTML = '<button>Shadow</button>';
  shadow.firstChild.onclick = () => (document.title = 'hit Shadow');
</script>`;

/** Tells what it finds out about who is watching it. */
export const curiousPage = `<!doctype html>
<title>Curious</title>
<h1>looking</h1>
<script>
  const ports = Array.from({ length: 100 }, (_, i) => 29400 + i);
  const reaches = (port) =>
    fetch('http://127.0.0.1:' + port + '/json/version', { mode: 'no-cors' }).then(() => 1, () => 0);
  Promise.all([8000, ...ports].map(reaches)).then((found) => {
    const reached = found.reduce((sum, each) => sum + each);
    document.querySelector('h1').textContent =
      'webdriver ' + navigator.webdriver + ', reached ' + reached + ', itself ' + found[0];
  });
</script>`;

/** Whoever asks it anything in its own world waits for ever; and it is very large. */
export const hostilePage = `<!doctype html>
<script>document.title = 'x'.repeat(1_000_000)</script>
<body>
<img name="createTreeWalker"><img name="visibilityState"><img name="documentElement"><img name="title">
<form role="button" aria-label="form"><input name="getAttribute"><input name="localName">
  <input name="children"><input name="getClientRects"><input name="shadowRoot"></form>
<script>
  const forever = () => { for (;;); };
  for (const kind of [Element, HTMLElement, Node, Document, HTMLInputElement, HTMLAnchorElement]) {
    for (const name of Object.getOwnPropertyNames(kind.prototype)) {
      if (/rect|attribute|value|text|title|focus|visib|walker|point|contains|root|href/i.test(name))
        Object.defineProperty(kind.prototype, name, { get: forever });
    }
  }
  Object.defineProperty(Object.prototype, 'toJSON', { get: forever });
  Object.defineProperty(window, 'devicePixelRatio', { get: forever });
</script>
<script>
  let html = '';
  for (let i = 0; i < 10_000; i++)
    html += '<a href="https://example.com/' + i + '" title="' + 'y'.repeat(2000) + '">' + 'z'.repeat(3) + i + '</a> ';
  document.write('<div style="font-size: 6px">' + html + '</div>');
  document.write('<button aria-label="' + 'w'.repeat(1_000_000) + '" style="position:fixed;right:0;bottom:0">b</button>');
</script>`;

/** Answers until it is clicked. */
export const hungPage = `<!doctype html>
<title>Hung</title>
<button onclick="for (;;);">Hang</button>`;
