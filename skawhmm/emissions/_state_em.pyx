"""What compiled EM runs ask of a family of states; see `fitting/_runs.pyx`."""

cimport cython


@cython.auto_pickle(False)
cdef class StateEM:
    """EM of the states of several models, one model at a time and without Python.

    A family of states derives from it. It holds the sequences, the states of a stack of
    models, which it changes in place, and the states of the priors.
    """

    cdef double expectation(
        self,
        Py_ssize_t m,
        const double* startprob,
        const double* transmat,
        double* starts,
        double* moves,
        double* counts,
    ) except? -1.0 nogil:
        """E step of model m; returns its log likelihood and keeps its statistics.

        Expected starts and moves are added, the frames of each state are filled in.
        """
        return 0.0

    cdef double log_prior(self, Py_ssize_t m) except? -1.0 nogil:
        """Log prior of the states of model m per frame of relevance."""
        return 0.0

    cdef int maximization(self, Py_ssize_t m, double relevance) except -1 nogil:
        """M step of model m, by the statistics kept; returns whether it must wait."""
        return 0

    def resume(self):
        """Finish the M steps of the models that wait."""
