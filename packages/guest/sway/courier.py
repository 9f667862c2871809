# Carries what the agent says to the compositor, and what the compositor says back. Debian's python3, since
# Node cannot send a file along, and a keyboard's map is sent as one.
#
# From the agent, frames: u32 length of the file, u32 length of the messages, both little-endian, then both.
# To the agent: the compositor's bytes as they are. A file that the compositor sends is dropped.

import os
import select
import socket
import struct
import sys

HEADER = struct.Struct("<II")
PIECE = 64 * 1024


def take(length):
    taken = bytearray()
    while len(taken) < length:
        piece = os.read(0, length - len(taken))
        if not piece:
            sys.exit()
        taken += piece
    return bytes(taken)


def write(fd, data):
    while data:
        data = data[os.write(fd, data) :]


compositor = socket.socket(socket.AF_UNIX)
compositor.connect(os.path.join(os.environ["XDG_RUNTIME_DIR"], os.environ["WAYLAND_DISPLAY"]))
while True:
    ready = select.select([0, compositor], [], [])[0]
    if compositor in ready:
        said = compositor.recv(PIECE)
        if not said:
            sys.exit()
        write(1, said)
    if 0 in ready:
        of_file, of_messages = HEADER.unpack(take(HEADER.size))
        content, messages = take(of_file), take(of_messages)
        if content:
            file = os.memfd_create("keymap")
            write(file, content)
            sent = socket.send_fds(compositor, [messages], [file])
            os.close(file)
            messages = messages[sent:]
        compositor.sendall(messages)
