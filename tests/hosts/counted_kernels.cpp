/* The linear algebra of the kernels on numbers that count what is done with them.
 *
 * Every function returns the number of additions, products, divisions, roots, magnitudes and comparisons of one call,
 * or the status if the kernel refuses.
 */
#include "counted.h"

#include "kg_control.h"
#include "kg_generalized.h"
#include "kg_linalg.h"

#define COUNTED(name, parameters, arguments)          \
  extern "C" long name parameters {                   \
    operations = 0;                                   \
    const int status = kg_##name arguments;           \
    return status < 0 ? (long)status : operations;    \
  }
typedef kg_real *array;

COUNTED(lu_solve, (int n, array a, array b), (n, a, b))
COUNTED(lu_solve_many, (int n, int m, array a, array b), (n, m, a, b))
COUNTED(cholesky_solve, (int n, array a, array b), (n, a, b))
COUNTED(cholesky_solve_many, (int n, int m, array a, array b), (n, m, a, b))
COUNTED(partition, (int n, int c, array J, array order), (n, c, J, order))
COUNTED(multipliers, (int n, int c, array J, array force, array work, array x), (n, c, J, force, work, x))
COUNTED(constrained_solve, (int n, int c, array Q, array P, array J, array b, array work, array x),
        (n, c, Q, P, J, b, work, x))
COUNTED(constrained_solve_lu, (int n, int c, array Q, array P, array J, array b, array work, array x),
        (n, c, Q, P, J, b, work, x))
COUNTED(udwadia_kalaba,
        (int n, int c, array Q, array P, array J, array b, array work, array x, array l, array rank),
        (n, c, Q, P, J, b, work, x, l, rank))
COUNTED(udwadia_kalaba_many, (int n, int c, int m, array Q, array J, array X, array work), (n, c, m, Q, J, X, work))
COUNTED(udwadia_kalaba_limit,
        (int n, int c, array Q, array P, array J, array b, array terms, array G, array h, array work, array x, array l,
         array rank),
        (n, c, Q, P, J, b, terms, G, h, work, x, l, rank))
COUNTED(canonical,
        (int n, int c, array Q, array rate, array P, array J, array b, array u, array terms, array G, array h,
         array work, array parts),
        (n, c, Q, rate, P, J, b, u, terms, G, h, work, parts))
COUNTED(control_solve, (int m, int n, array A, array z, array terms, array y, array work, array x),
        (m, n, A, z, terms, y, work, x))
COUNTED(control_damped, (int m, int n, array A, array z, array damping, array work, array x),
        (m, n, A, z, damping, work, x))
COUNTED(control_feasibility, (int m, int n, array A, array z, array terms, array work, array x, array result),
        (m, n, A, z, terms, work, x, result))
