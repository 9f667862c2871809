# Holds one terminal session: a pty with a login shell, and a socket where the agent attaches to it. It
# outlives agents; it ends with its shell. Debian's python3, since Node has no pty.
#
# Frames both ways: u8 type, u32 length (big-endian), payload (frames.ts is the other end).
#   from the agent: A attach and S size: u16 columns, u16 rows; I input
#   to the agent:   H attached: u32 input still pending; O output; T taken: u32 bytes of input that
#                   reached the pty; D another attached; X exited: u8 code

import fcntl
import os
import select
import signal
import socket
import struct
import termios
import time

KEPT = 256 * 1024
PIECE = 64 * 1024
# With its header, what the agent reads at a time.
OUTPUT = PIECE - 5
# The host lets no more than 1 MiB pend; whoever sends more waits here.
MOST_PENDING = 1024 * 1024 + PIECE
# Connections that have not attached.
MOST_VISITORS = 16
# Nobody came to a session that was made: whoever asked for it went away.
UNWANTED_S = 10
# Input that was taken is told with the output that it causes, or after this time.
TELL_MS = 5
# Output of a program that writes more than this waits so long for more.
BULK = 8 * 1024
GATHER_MS = 1
HEADER = struct.Struct(">BI")


def frame(kind, payload):
    return HEADER.pack(ord(kind), len(payload)) + payload


def replayable(kept):
    """What is kept begins anywhere: the first line is left out, or at least the rest of a character."""
    if len(kept) <= KEPT:
        return bytes(kept)
    recent = bytes(kept[-KEPT:])
    line = recent.find(b"\n", 0, KEPT // 4)
    if line >= 0:
        return recent[line + 1 :]
    start = 0
    while start < 4 and recent[start] & 0xC0 == 0x80:
        start += 1
    return recent[start:]


class Attachment:
    """One connection of the agent: what came and is no whole frame yet, and what could not be sent yet."""

    def __init__(self, connection):
        connection.setblocking(False)
        self.connection = connection
        self.received = bytearray()
        self.unsent = b""

    def fileno(self):
        return self.connection.fileno()

    def send(self, *pieces):
        """Call only with nothing unsent, or with little."""
        if self.unsent:
            self.unsent += b"".join(pieces)
            return
        try:
            sent = self.connection.sendmsg(pieces)
        except BlockingIOError:
            sent = 0
        if sent < sum(map(len, pieces)):
            self.unsent = b"".join(pieces)[sent:]

    def flush(self):
        try:
            sent = self.connection.send(self.unsent)
        except BlockingIOError:
            return
        self.unsent = self.unsent[sent:]

    def finish(self):
        """Nothing more is said. Closing would be too soon: with input unread, what was said last is lost."""
        self.connection.shutdown(socket.SHUT_WR)

    def gone(self):
        """Leaves unheard what still comes; true at its end."""
        try:
            return not self.connection.recv(PIECE)
        except BlockingIOError:
            return False
        except OSError:
            return True

    def frames(self):
        """Whole frames that came; an EOFError when the agent is gone or talks nonsense."""
        try:
            chunk = self.connection.recv(PIECE)
        except BlockingIOError:
            return
        if not chunk:
            raise EOFError
        self.received += chunk
        while len(self.received) >= HEADER.size:
            kind, length = HEADER.unpack_from(self.received)
            if length > PIECE:
                raise EOFError
            end = HEADER.size + length
            if len(self.received) < end:
                return
            payload = bytes(self.received[HEADER.size : end])
            del self.received[:end]
            yield chr(kind), payload


class Session:
    def __init__(self, config):
        self.config = config
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.setblocking(False)
        self.listener.bind(config["socket"])
        self.listener.listen(MOST_VISITORS)
        self.visitors = []
        self.attached = None
        # Told that they are over, and not gone yet.
        self.leaving = []
        # Without a shell until somebody attaches: its size is known then, and nobody misses its end.
        self.shell = None
        self.master = -1
        self.slave = -1
        self.more = None
        self.kept = bytearray()
        self.pending = bytearray()
        self.taken = 0
        self.code = None
        self.wake, waker = os.pipe()
        for end in (self.wake, waker):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def run(self):
        unwanted = time.monotonic() + UNWANTED_S
        while self.code is None:
            if self.shell is None and time.monotonic() > unwanted:
                self.retire()
                return
            self.turn()
        # The last of the output is the reader's, however slow it is.
        while self.attached is not None and self.attached.unsent:
            self.turn()
        if self.attached is not None:
            self.let_go()
        while self.leaving:
            self.turn()

    def turn(self):
        poll = select.poll()
        poll.register(self.wake, select.POLLIN)
        if self.listener is not None:
            poll.register(self.listener, select.POLLIN)
        for other in self.visitors + self.leaving:
            poll.register(other, select.POLLIN)
        stalled = False
        if self.attached is not None:
            stalled = bool(self.attached.unsent)
            wanted = select.POLLOUT if stalled else 0
            if len(self.pending) < MOST_PENDING:
                wanted |= select.POLLIN
            poll.register(self.attached, wanted)
        if self.shell is not None and self.code is None:
            wanted = 0 if stalled else select.POLLIN
            poll.register(self.master, wanted | (select.POLLOUT if self.pending else 0))
        timeout = TELL_MS if self.taken and not stalled else 1000 if self.shell is None else None
        ready = poll.poll(timeout)
        if not ready:
            self.tell_taken()
        for fd, events in ready:
            if fd == self.wake:
                self.look_after_shell()
            elif self.attached is not None and fd == self.attached.fileno():
                self.serve_attached(events)
            elif self.listener is not None and fd == self.listener.fileno():
                self.welcome()
            elif fd == self.master:
                self.serve_pty(events)
            elif not self.see_off(fd):
                self.serve_visitor(fd)

    def welcome(self):
        try:
            connection, _ = self.listener.accept()
        except OSError:
            return
        self.visitors.append(Attachment(connection))
        if len(self.visitors) > MOST_VISITORS:
            self.visitors.pop(0).connection.close()

    def serve_visitor(self, fd):
        for visitor in self.visitors:
            if visitor.fileno() == fd:
                break
        else:
            return
        try:
            for kind, payload in visitor.frames():
                if kind == "A":
                    self.attach(visitor, payload)
                elif visitor is self.attached:
                    self.obey(kind, payload)
        except (EOFError, OSError, struct.error):
            if visitor is self.attached:
                self.detach()
            else:
                self.visitors.remove(visitor)
                visitor.connection.close()

    def attach(self, visitor, size):
        columns, rows = struct.unpack(">HH", size)
        if self.attached is not None:
            self.hear_out()
        if self.shell is None:
            self.start(columns, rows)
        else:
            self.resize(columns, rows)
        if self.attached is not None:
            try:
                self.attached.send(frame("D", b""))
            except OSError:
                pass
            self.let_go()
        self.visitors.remove(visitor)
        self.attached = visitor
        self.taken = 0
        recent = replayable(self.kept)
        visitor.send(frame("H", struct.pack(">I", len(self.pending))))
        for at in range(0, len(recent), OUTPUT):
            visitor.send(frame("O", recent[at : at + OUTPUT]))

    def hear_out(self):
        """What was typed before another attached is not lost."""
        old = self.attached
        try:
            heard = True
            while heard and self.attached is old and len(self.pending) < MOST_PENDING:
                before = len(old.received)
                frames = list(old.frames())
                for kind, payload in frames:
                    self.obey(kind, payload)
                heard = frames or len(old.received) > before
        except (EOFError, OSError, struct.error):
            self.detach()

    def let_go(self):
        """One that is stuck is not waited for: the host tells its client."""
        stuck = self.attached.unsent
        try:
            self.attached.finish()
        except OSError:
            stuck = True
        if stuck:
            self.detach()
            return
        self.leaving.append(self.attached)
        self.attached = None
        if len(self.leaving) > MOST_VISITORS:
            self.leaving.pop(0).connection.close()

    def see_off(self, fd):
        for other in self.leaving:
            if other.fileno() == fd:
                if other.gone():
                    self.leaving.remove(other)
                    other.connection.close()
                return True
        return False

    def detach(self):
        if self.attached is not None:
            self.attached.connection.close()
        self.attached = None

    def serve_attached(self, events):
        try:
            if events & select.POLLOUT:
                self.attached.flush()
            if events & (select.POLLIN | select.POLLHUP | select.POLLERR):
                for kind, payload in self.attached.frames():
                    self.obey(kind, payload)
        except (EOFError, OSError, struct.error):
            self.detach()

    def obey(self, kind, payload):
        if kind == "S":
            self.resize(*struct.unpack(">HH", payload))
        elif kind == "I" and self.code is None:
            self.pending += payload
            self.feed()

    def serve_pty(self, events):
        if events & select.POLLOUT:
            self.feed()
        if events & (select.POLLIN | select.POLLHUP):
            self.pass_on(OUTPUT)

    def feed(self):
        try:
            while self.pending:
                wrote = os.write(self.master, self.pending[:PIECE])
                del self.pending[:wrote]
                self.taken += wrote
        except OSError:
            # Full for now, or hung up, which the end of the shell explains.
            pass
        if self.taken >= PIECE:
            self.tell_taken()

    def tell_taken(self):
        if self.taken and self.attached is not None:
            try:
                self.attached.send(frame("T", struct.pack(">I", self.taken)))
            except OSError:
                self.detach()
        self.taken = 0

    def pass_on(self, most):
        """Output to the ring and to whoever is attached, as much as a frame holds. False: there is none."""
        pieces = []
        length = 0
        # The pty gives 4 KiB at a time; of much output, frames are filled.
        while length < most and (length < BULK or self.more.poll(GATHER_MS)):
            try:
                piece = os.read(self.master, most - length)
            except OSError:
                # Nothing more for now; or the shell hung up, which its end explains.
                break
            pieces.append(piece)
            length += len(piece)
        if not pieces:
            return False
        # One by one they may be more than a call can send.
        output = b"".join(pieces)
        self.kept += output
        if len(self.kept) > 2 * KEPT:
            # One byte more than is replayed says that something is missing before it.
            del self.kept[: -KEPT - 1]
        # First, so that whoever sees what its input did knows that there is room for as much again.
        self.tell_taken()
        if self.attached is not None:
            try:
                self.attached.send(HEADER.pack(ord("O"), length), output)
            except OSError:
                self.detach()
        return True

    def resize(self, columns, rows):
        try:
            fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        except OSError:
            pass

    def start(self, columns, rows):
        # Our own hold on the slave: a shell that closes its terminal and lives on is no hang-up.
        self.master, self.slave = os.openpty()
        os.set_blocking(self.master, False)
        self.more = select.poll()
        self.more.register(self.master, select.POLLIN)
        modes = termios.tcgetattr(self.slave)
        # Erasing takes whole UTF-8 characters (IUTF8, which this python does not name).
        modes[0] |= 0o40000
        termios.tcsetattr(self.slave, termios.TCSANOW, modes)
        self.resize(columns, rows)
        if os.getuid() == 0:
            os.fchown(self.slave, self.config["uid"], -1)
        self.shell = os.fork()
        if self.shell == 0:
            try:
                self.become_shell()
            finally:
                os._exit(127)

    def become_shell(self):
        config = self.config
        os.setsid()
        fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0)
        for fd in range(3):
            os.dup2(self.slave, fd)
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGHUP, signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        if os.getuid() != config["uid"]:
            os.initgroups(config["user"], config["gid"])
            os.setgid(config["gid"])
            os.setuid(config["uid"])
        try:
            os.chdir(config["home"])
        except OSError:
            os.chdir("/")
        # The dash makes it a login shell.
        os.execve(config["shell"], ["-" + os.path.basename(config["shell"])], config["env"])

    def look_after_shell(self):
        try:
            while os.read(self.wake, 4096):
                pass
        except BlockingIOError:
            pass
        if self.shell is None or self.code is not None:
            return
        pid, status = os.waitpid(self.shell, os.WNOHANG)
        if pid == 0:
            return
        code = os.waitstatus_to_exitcode(status)
        self.code = code if code >= 0 else 128 - code
        # What it wrote is still in the pty, 64 KiB or so; what others go on writing is not the shell's.
        for _ in range(4):
            if not self.pass_on(OUTPUT):
                break
        self.tell_taken()
        self.pending.clear()
        # Before it is told: whoever hears of it may ask for another session at once.
        self.retire()
        if self.attached is not None:
            try:
                self.attached.send(frame("X", bytes([self.code])))
            except OSError:
                self.detach()

    def retire(self):
        """The name is free for another session."""
        self.listener.close()
        self.listener = None
        try:
            os.unlink(self.config["socket"])
        except OSError:
            pass
        for visitor in self.visitors:
            visitor.connection.close()
        self.visitors = []


def hold(config):
    for number in (signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    os.umask(0o077)
    session = Session(config)
    os.umask(0o022)
    # The agent waits for this.
    os.write(1, b"\n")
    nothing = os.open(os.devnull, os.O_RDWR)
    for fd in range(3):
        os.dup2(nothing, fd)
    os.close(nothing)
    session.run()
