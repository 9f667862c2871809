// What a secret may be called in a computer: wire-account section 3.

export const envPattern = /^[A-Za-z_][A-Za-z0-9_]{0,63}$/;
export const filePattern = /^[a-z][a-z0-9_-]{0,47}$/;

/** Where the files of bound secrets are, in a memory file system of the guest. */
export const secretsFolder = '/run/cubicle-secrets';
