/* Numbers that count what is done with them: additions, products, divisions, functions, magnitudes and comparisons.
 *
 * Include this before the runtime headers, as C++. Both values of a choice (KG_SELECT) are computed, as on a machine
 * without branches.
 */
#ifndef COUNTED_H
#define COUNTED_H

#include <cfloat>
#include <cmath>
#include <cstddef>
#include <cstring>

static long operations = 0;

struct kg_real {
  double value;
  kg_real() = default;
  kg_real(double x) : value(x) {}
  kg_real(int x) : value(x) {}
  explicit operator double() const { return value; }
  explicit operator int() const { return (int)value; }
  explicit operator ptrdiff_t() const { return (ptrdiff_t)value; }
};

static inline double counted(double x) {
  ++operations;
  return x;
}
static inline bool judged(bool x) {
  ++operations;
  return x;
}
#define OPERATOR(op)                                                                                         \
  static inline kg_real operator op(kg_real x, kg_real y) { return kg_real(counted(x.value op y.value)); } \
  static inline kg_real &operator op##=(kg_real &x, kg_real y) { return x = x op y; }
#define COMPARISON(op) \
  static inline bool operator op(kg_real x, kg_real y) { return judged(x.value op y.value); }
OPERATOR(+)
OPERATOR(-)
OPERATOR(*)
OPERATOR(/)
COMPARISON(<)
COMPARISON(>)
COMPARISON(<=)
COMPARISON(>=)
COMPARISON(==)
COMPARISON(!=)
static inline kg_real operator-(kg_real x) { return kg_real(-x.value); }
static inline kg_real counted_magnitude(kg_real x) { return kg_real(counted(std::fabs(x.value))); }
static inline kg_real counted_root(kg_real x) { return kg_real(counted(std::sqrt(x.value))); }
static inline kg_real counted_larger(kg_real x, kg_real y) { return x > y ? x : y; }
static inline kg_real counted_smaller(kg_real x, kg_real y) { return x < y ? x : y; }
static inline bool counted_isfinite(kg_real x) { return judged(std::isfinite(x.value)); }

#define KG_REAL_DEFINED
#define KG_C(x) kg_real(x)
#define KG_ABS(x) counted_magnitude(x)
#define KG_SQRT(x) counted_root(x)
#define KG_MIN(x, y) counted_smaller(x, y)
#define KG_MAX(x, y) counted_larger(x, y)
#define KG_ISFINITE(x) counted_isfinite(x)
#define KG_EPSILON kg_real(DBL_EPSILON)
#define KG_TINY kg_real(DBL_MIN)
#define KG_RECIPROCAL(x) counted_reciprocal(x)
#define KG_SELECT(condition, x, y) counted_choice(condition, x, y)
#define KG_TRUTH(condition) kg_real((condition) ? 1.0 : 0.0)
static inline kg_real counted_choice(bool condition, kg_real x, kg_real y) { return condition ? x : y; }
static inline kg_real counted_reciprocal(kg_real x) { return kg_real(counted(x.value != 0.0 ? 1.0 / x.value : 0.0)); }

#define COUNTED_FUNCTION(name) \
  static inline kg_real counted_##name(kg_real x) { return kg_real(counted(std::name(x.value))); }
#define COUNTED_FUNCTION_OF_TWO(name) \
  static inline kg_real counted_##name(kg_real x, kg_real y) { return kg_real(counted(std::name(x.value, y.value))); }
COUNTED_FUNCTION(sin)
COUNTED_FUNCTION(cos)
COUNTED_FUNCTION(tan)
COUNTED_FUNCTION(exp)
COUNTED_FUNCTION(log)
COUNTED_FUNCTION(tanh)
COUNTED_FUNCTION(floor)
COUNTED_FUNCTION(ceil)
COUNTED_FUNCTION_OF_TWO(atan2)
COUNTED_FUNCTION_OF_TWO(pow)
#define KG_SIN(x) counted_sin(x)
#define KG_COS(x) counted_cos(x)
#define KG_TAN(x) counted_tan(x)
#define KG_EXP(x) counted_exp(x)
#define KG_LOG(x) counted_log(x)
#define KG_TANH(x) counted_tanh(x)
#define KG_FLOOR(x) counted_floor(x)
#define KG_CEIL(x) counted_ceil(x)
#define KG_ATAN2(y, x) counted_atan2(y, x)
#define KG_POW(x, y) counted_pow(x, y)

#endif
