r"""The plan of the greatest entropy among all plans that use given cells only.

Optimal plans of a transport problem are the plans on the cells of zero reduced cost,
the marked cells. If there are several, one of them is the most even: the plan of the
greatest entropy, which is also the closest to the product of the margins by relative
entropy. It is unique, and therefore does not depend on the order of the nodes.

Which cells it uses is a question about paths. Given any of the plans, mass can be moved
along a cycle that enters sinks by marked cells and leaves them by cells with mass. So a
marked cell has mass in some plan if and only if its two nodes lie in one strongly
connected component of these steps, and the plan of the greatest entropy uses them all.
On these cells it is :math:`w_{ij} = u_i v_j`. Scaling rows and columns in turn
(Sinkhorn) finds it, but slowly where cells are forced to have little mass. A Newton
step after each turn makes the convergence quadratic. With exact columns its system is
the Laplacian of a graph whose nodes are the sources, with conductances
:math:`\sum_j w_{ij} w_{kj} / b_j`: it is solved without any subtraction, so that small
masses keep their digits.
"""

import numpy as np

from libc.math cimport exp, fabs

from skawhmm.numerics._transport cimport MASS_ROUNDING

cdef extern from *:
    """
    /* Masses are probabilities. A smaller one may be what rounding left of zero, and
       products of smaller ones might underflow: it stays where it is. */
    #define LEAST_MASS 1e-13

    /* Newton steps are quadratic near the solution, and before that change logarithms
       by up to 1 each: up to 40 are seen. */
    #define MAX_STEPS 300
    """
    const double LEAST_MASS
    const int MAX_STEPS


def make_face(int size):
    """Return the scratch arrays for plans of up to `size` sources and sinks."""
    return np.empty(5 * size + size * size), np.empty(10 * size, np.intc)


cdef Face face_of(double[::1] numbers, int[::1] nodes, int size) noexcept nogil:
    """The arrays of `make_face` as the kernels read them."""
    cdef Face face
    face.component, face.spare = &nodes[0], &nodes[2 * size]
    face.queue, face.seen = &nodes[4 * size], &nodes[6 * size]
    face.sources, face.sinks = &nodes[8 * size], &nodes[9 * size]
    face.supply, face.demand = &numbers[0], &numbers[size]
    face.gap, face.change = &numbers[2 * size], &numbers[3 * size]
    face.degree, face.between = &numbers[4 * size], &numbers[5 * size]
    return face


cdef bint find_components(
    const double* marks,
    const double* plan,
    int n_sources,
    int n_sinks,
    const Face* face,
) noexcept nogil:
    """Find the components of the face; return whether it has more than one plan.

    A component with one cell less than it has nodes is a tree, on which masses follow
    from the margins.
    """
    cdef int n_nodes = n_sources + n_sinks, node, i, j
    cdef bint several = False
    for node in range(n_nodes):
        face.component[node] = -1
        face.spare[node] = 1
    for i in range(n_sources):
        if face.component[i] >= 0:
            continue
        for node in range(n_nodes):
            face.seen[node] = 0
        search(i, 1, marks, plan, n_sources, n_sinks, face)
        search(i, 2, marks, plan, n_sources, n_sinks, face)
        for node in range(n_nodes):
            if face.seen[node] == 3:
                face.component[node] = i
                face.spare[i] -= 1
    for i in range(n_sources):
        for j in range(n_sinks):
            if marks[i * n_sinks + j] == 0:
                if face.component[i] == face.component[n_sources + j]:
                    face.spare[face.component[i]] += 1
                    several |= face.spare[face.component[i]] > 0
    return several


cdef void search(
    int start,
    int way,
    const double* marks,
    const double* plan,
    int n_sources,
    int n_sinks,
    const Face* face,
) noexcept nogil:
    """Add `way` to what is `seen` of the nodes that lead from a node, or (2) to it."""
    cdef int count = 1, n_others, node, other, cell, k
    cdef bint is_source, leads
    face.queue[0] = start
    face.seen[start] += way
    while count > 0:
        count -= 1
        node = face.queue[count]
        is_source = node < n_sources
        n_others = n_sinks if is_source else n_sources
        for k in range(n_others):
            other = n_sources + k if is_source else k
            cell = node * n_sinks + k if is_source else k * n_sinks + node - n_sources
            # Steps go to sinks by marked cells, and back to sources by cells with mass.
            if is_source == (way == 1):
                leads = marks[cell] == 0
            else:
                leads = plan[cell] > LEAST_MASS
            if leads and face.seen[other] < way:
                face.seen[other] += way
                face.queue[count] = other
                count += 1


cdef void maximize_entropy(
    const double* marks, int n_sources, int n_sinks, double* plan, const Face* face
) noexcept nogil:
    """Replace a plan by the one of greatest entropy, after `find_components`.

    The margins of the plan stay the same. Masses outside of the components stay.
    """
    cdef int i, node, step, n_rows, n_columns
    for i in range(n_sources):
        # A component has the number of its first source.
        if face.component[i] != i or face.spare[i] <= 0:
            continue
        n_rows = n_columns = 0
        for node in range(n_sources + n_sinks):
            if face.component[node] == i:
                if node < n_sources:
                    face.sources[n_rows] = node
                    n_rows += 1
                else:
                    face.sinks[n_columns] = node - n_sources
                    n_columns += 1
        start_scaling(marks, n_sinks, n_rows, n_columns, plan, face)
        for step in range(MAX_STEPS):
            if scale(n_sinks, n_rows, n_columns, plan, face) <= MASS_ROUNDING:
                break
            newton_step(n_sinks, n_rows, n_columns, plan, face)


cdef void start_scaling(
    const double* marks,
    int n_sinks,
    int n_rows,
    int n_columns,
    double* plan,
    const Face* face,
) noexcept nogil:
    """Keep the margins of a component and put their product on its cells.

    The source of the largest mass comes first: there, the rounding of the sums hurts
    least.
    """
    cdef int first = 0, i, j, cell
    for j in range(n_columns):
        face.demand[j] = 0.0
    for i in range(n_rows):
        face.supply[i] = 0.0
        for j in range(n_columns):
            cell = face.sources[i] * n_sinks + face.sinks[j]
            face.supply[i] += plan[cell]
            face.demand[j] += plan[cell]
        if face.supply[i] > face.supply[first]:
            first = i
    face.sources[0], face.sources[first] = face.sources[first], face.sources[0]
    face.supply[0], face.supply[first] = face.supply[first], face.supply[0]
    for i in range(n_rows):
        for j in range(n_columns):
            cell = face.sources[i] * n_sinks + face.sinks[j]
            if marks[cell] == 0:
                plan[cell] = face.supply[i] * face.demand[j]


cdef double scale(
    int n_sinks, int n_rows, int n_columns, double* plan, const Face* face
) noexcept nogil:
    """Scale rows, then columns, to their margins.

    Fill `gap` with what rows lack afterwards; return the largest part of a row.
    """
    cdef double total, factor, largest = 0.0
    cdef double* row
    cdef int i, j
    for i in range(n_rows):
        row = plan + face.sources[i] * n_sinks
        total = 0.0
        for j in range(n_columns):
            total += row[face.sinks[j]]
        factor = face.supply[i] / total
        for j in range(n_columns):
            row[face.sinks[j]] *= factor
    for j in range(n_columns):
        total = 0.0
        for i in range(n_rows):
            total += plan[face.sources[i] * n_sinks + face.sinks[j]]
        factor = face.demand[j] / total
        for i in range(n_rows):
            plan[face.sources[i] * n_sinks + face.sinks[j]] *= factor
    for i in range(n_rows):
        row = plan + face.sources[i] * n_sinks
        total = 0.0
        for j in range(n_columns):
            total += row[face.sinks[j]]
        face.gap[i] = face.supply[i] - total
        largest = max(largest, fabs(face.gap[i]) / face.supply[i])
    return largest


cdef void newton_step(
    int n_sinks, int n_rows, int n_columns, double* plan, const Face* face
) noexcept nogil:
    """Multiply the plan by factors of its rows and columns that close the gaps.

    No logarithm changes by more than 1. Up to there exp(x) - 1 - x is below 0.72 x^2,
    and every step lowers the convex function whose minimum is sought.
    """
    cdef double other, largest = 1.0
    cdef double* row
    cdef int i, j
    fill_between(n_sinks, n_rows, n_columns, plan, face)
    solve_laplacian(n_rows, face)
    # Margins of columns are exact: these are the changes that keep them.
    for j in range(n_columns):
        other = 0.0
        for i in range(n_rows):
            row = plan + face.sources[i] * n_sinks
            other += row[face.sinks[j]] * face.change[i]
        face.degree[j] = other / face.demand[j]
    for i in range(n_rows):
        row = plan + face.sources[i] * n_sinks
        for j in range(n_columns):
            if row[face.sinks[j]] > 0:
                largest = max(largest, fabs(face.change[i] - face.degree[j]))
    for i in range(n_rows):
        row = plan + face.sources[i] * n_sinks
        for j in range(n_columns):
            if row[face.sinks[j]] > 0:
                row[face.sinks[j]] *= exp((face.change[i] - face.degree[j]) / largest)


cdef void fill_between(
    int n_sinks, int n_rows, int n_columns, const double* plan, const Face* face
) noexcept nogil:
    """Fill the conductances between the sources of a component, below the diagonal."""
    cdef const double* row
    cdef const double* other
    cdef double total
    cdef int i, j, k
    for i in range(n_rows):
        row = plan + face.sources[i] * n_sinks
        for k in range(i):
            other = plan + face.sources[k] * n_sinks
            total = 0.0
            for j in range(n_columns):
                total += row[face.sinks[j]] * (other[face.sinks[j]] / face.demand[j])
            face.between[i * n_rows + k] = total


cdef void solve_laplacian(int n_nodes, const Face* face) noexcept nogil:
    """Fill `change` with the potentials that send the gaps as currents; the first is 0.

    Nodes are eliminated from the last to the second, a star being replaced by a mesh.
    """
    cdef double* row
    cdef double part
    cdef int i, k, l
    for i in range(n_nodes - 1, 0, -1):
        row = face.between + i * n_nodes
        face.degree[i] = 0.0
        for k in range(i):
            face.degree[i] += row[k]
        for k in range(i):
            if row[k] > 0:
                part = row[k] / face.degree[i]
                face.gap[k] += part * face.gap[i]
                for l in range(k):
                    face.between[k * n_nodes + l] += part * row[l]
    face.change[0] = 0.0
    for i in range(1, n_nodes):
        row = face.between + i * n_nodes
        part = face.gap[i]
        for k in range(i):
            part += row[k] * face.change[k]
        # A connected node has neighbours, unless their masses underflow.
        face.change[i] = part / face.degree[i] if face.degree[i] > 0 else 0.0
