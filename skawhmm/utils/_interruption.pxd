"""Ctrl-C in compiled loops, which call `interrupted` at least ten times a second."""

cdef extern from "_interruption.h" nogil:
    # Work on at most this many numbers need not check.
    const Py_ssize_t LITTLE_WORK

    # Raises if the user pressed Ctrl-C, or if nobody waits for the result any more.
    int interrupted() except -1
