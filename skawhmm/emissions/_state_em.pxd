"""EM of the states of one model after the other, for the loop that takes the steps."""


cdef class StateEM:
    cdef double expectation(
        self,
        Py_ssize_t m,
        const double* startprob,
        const double* transmat,
        double* starts,
        double* moves,
        double* counts,
    ) except? -1.0 nogil

    cdef double log_prior(self, Py_ssize_t m) except? -1.0 nogil

    cdef int maximization(self, Py_ssize_t m, double relevance) except -1 nogil
