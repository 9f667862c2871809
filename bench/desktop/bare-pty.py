# A pty, `cat` on it, and what it shows on the standard output.
import os
import pty
import sys

pid, master = pty.fork()
if pid == 0:
    os.execvp("cat", ["cat", sys.argv[1]])
try:
    while chunk := os.read(master, 65536):
        os.write(1, chunk)
except OSError:
    pass
os.waitpid(pid, 0)
