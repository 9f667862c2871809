# What the bench does inside the guest, where it is measured by the guest's own clock: pictures of the
# screen by the quickest tool there is, a window that opens another one when it is clicked, and a clipboard
# that changes hands. Times are of CLOCK_MONOTONIC, which guest and host have in common.
import ctypes
import subprocess
import sys
import time

x11 = ctypes.CDLL("libX11.so.6")
x11.XOpenDisplay.restype = ctypes.c_void_p
BUTTON_PRESS_MASK = 4


def pictures(count, *command):
    """Prints the milliseconds that each took, from its start to the end of the file."""
    for _ in range(int(count)):
        began = time.monotonic_ns()
        with open("/tmp/picture", "wb") as picture:
            subprocess.run(command, stdout=picture, check=True)
        print((time.monotonic_ns() - began) / 1e6)


def window(display, name, at):
    root = x11.XDefaultRootWindow(display)
    made = x11.XCreateSimpleWindow(display, root, at, at, 200, 100, 0, 0, 0xFFFFFF)
    x11.XStoreName(display, made, name)
    return made


def button():
    """Until it is killed."""
    display = ctypes.c_void_p(x11.XOpenDisplay(None))
    clicked, opened = window(display, b"bench-button", 0), window(display, b"bench-opened", 300)
    x11.XSelectInput(display, clicked, ctypes.c_long(BUTTON_PRESS_MASK))
    x11.XMapWindow(display, clicked)
    event = ctypes.create_string_buffer(256)
    while True:
        x11.XNextEvent(display, event)
        x11.XMapWindow(display, opened)
        x11.XFlush(display)
        time.sleep(0.3)
        x11.XUnmapWindow(display, opened)
        x11.XFlush(display)


def copies(count):
    """Prints when each was made, in nanoseconds."""
    display = ctypes.c_void_p(x11.XOpenDisplay(None))
    owner = window(display, b"bench-owner", 0)
    clipboard = x11.XInternAtom(display, b"CLIPBOARD", 0)
    for _ in range(int(count)):
        time.sleep(0.05)
        print(time.monotonic_ns())
        x11.XSetSelectionOwner(display, clipboard, owner, 0)
        x11.XFlush(display)
    # The clipboard stays until all has been told.
    time.sleep(0.5)


globals()[sys.argv[1]](*sys.argv[2:])
