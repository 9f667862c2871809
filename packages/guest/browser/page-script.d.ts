// The bundler gives the text of the script that runs in pages, made of its modules.
declare module '*?text' {
  const text: string;
  export default text;
}
