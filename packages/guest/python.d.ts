// The bundler gives the text of a Python file.
declare module '*.py' {
  const text: string;
  export default text;
}
