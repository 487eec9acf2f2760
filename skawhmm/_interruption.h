/* Ctrl-C in compiled loops.
 *
 * A loop that may run for long calls `interrupted` at least ten times a second, and
 * ends with an error if it returns -1: the Python exception is then set. A call takes
 * some nanoseconds, so it belongs next to work of a microsecond or more. */
#ifndef SKAWHMM_INTERRUPTION_H
#define SKAWHMM_INTERRUPTION_H

#include <Python.h>
#include <time.h>

/* Work on at most this many numbers takes microseconds and need not check. */
#define LITTLE_WORK 4096

#if defined(_MSC_VER)
#define PER_THREAD __declspec(thread)
#else
#define PER_THREAD _Thread_local
#endif

/* Whether a tenth of a second of the clock has begun since this was last true. */
static inline int is_due(void)
{
    static PER_THREAD long long before = -1;
    struct timespec now;
#if defined(CLOCK_MONOTONIC_COARSE)
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
#else
    timespec_get(&now, TIME_UTC);
#endif
    const long long tenths = (long long)now.tv_sec * 10 + now.tv_nsec / 100000000;
    const int due = tenths != before;
    before = tenths;
    return due;
}

/* Run the handlers of signals, and ask whether the work of this thread is still wanted. */
static int heed_signals(void)
{
    const PyGILState_STATE state = PyGILState_Ensure();
    PyObject *module = NULL, *answer = NULL;
    if (PyErr_CheckSignals() == 0)
        module = PyImport_ImportModule("skawhmm.utils._interruption");
    if (module != NULL)
        answer = PyObject_CallMethod(module, "check_wanted", NULL);
    const int code = answer == NULL ? -1 : 0;
    Py_XDECREF(answer);
    Py_XDECREF(module);
    PyGILState_Release(state);
    return code;
}

/* 0, or -1 with an exception set. The GIL need not be held. */
static inline int interrupted(void)
{
    return is_due() ? heed_signals() : 0;
}

#endif
