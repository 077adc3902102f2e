/* kg_zeros.h - finds the first zero of a function over an interval from few values.
 *
 * The function is sampled at the Chebyshev-Lobatto points of a piece and replaced by the polynomial of degree 4 through
 * them. Its Bernstein coefficients enclose it (G. Farin, Curves and Surfaces for CAGD, chapter 5), a margin allows for
 * the error of interpolation, which the last Chebyshev coefficients and one value more estimate. Where the enclosure
 * shows that the function keeps its sign, has one zero or one extremum, the piece is decided; else it is halved. A
 * seventh value confirms zeros, and that there are none where the function oscillates. Zeros are missed only where all
 * values of a fast oscillation look like those of a slow function by chance.
 */
#ifndef KG_ZEROS_H
#define KG_ZEROS_H

#include "kg_model.h"

#ifdef __cplusplus
extern "C" {
#endif

#define KG_ZEROS_NODES 5
#define KG_ZEROS_VALUES 6 /* at the nodes, and at the point that checks the interpolation */
#define KG_ZEROS_PIECES 64
#define KG_ZEROS_BEYOND KG_C(1e-3) /* how far a zero at the end is followed, as a fraction of the whole */
#define KG_ZEROS_EFFORT 200000 /* halvings, after which pieces are decided as they are */

/* Which zeros count: those where the sign changes, falling or rising (not touches), or all. A condition is positive
 * where it holds; it counts where it falls below zero. */
#define KG_FALLING (-1)
#define KG_ANY 0
#define KG_RISING 1
#define KG_CONDITION 2

/* It is on the surface because it has just crossed it. */
#define KG_CROSSED 2

/* What was found. */
#define KG_NOTHING 0
#define KG_CROSSING 1 /* the sign changes between a and b */
#define KG_TOUCH 2    /* zero at a == b to within the tolerance, and of the same sign on both sides */
#define KG_CARRIED 3  /* the function has jumped across zero */

typedef struct {
  int kind;
  kg_real a, b;   /* places, from 0 to 1 */
  kg_real ga, gb; /* values there */
  kg_real turn;   /* place up to which the sign last changed without counting; negative: nowhere */
} kg_found;

/* Values at the six places of the piece from a to b. */
typedef struct {
  kg_real a, b;
  kg_real g[KG_ZEROS_VALUES];
} kg_piece;

typedef struct {
  int (*value)(void *context, kg_real place, kg_real *g); /* 0 or a negative status */
  void *context;
  int rule;         /* KG_FALLING ... KG_CONDITION */
  int side;         /* sign before the present piece; 0: on the surface g = 0, which it can leave */
  int came;         /* how it has come to the surface: the sign from which it jumped there, KG_CROSSED, or 0 */
  kg_real noise;    /* values below this count as zero */
  kg_real unit;     /* extrema closer to zero than this are touches */
  kg_real flat;     /* what is on the surface and ends a piece closer than this, after no more than */
  kg_real swing;    /* this, does not leave it */
  kg_real shortest; /* pieces of this length are not halved */
  kg_real limit;    /* zeros beyond this place do not matter */
  int restless;     /* whether the function may oscillate fast, as it did before */
  int falling;      /* whether it approached zero just before the present piece */
  long effort;
} kg_zeros;

#define KG_ZEROS_CLEAR 10
#define KG_ZEROS_HALVE 11
#define KG_ZEROS_FOUND 12

/* Place of value number k, as a fraction of a piece. */
static inline kg_real kg_zeros_place(int k) {
  static const kg_real places[KG_ZEROS_VALUES] = {KG_C(0.0), KG_C(0.14644660940672623780), KG_C(0.5),
                                                 KG_C(0.85355339059327376220), KG_C(1.0), KG_C(0.3071)};
  return places[k];
}

/* Bernstein coefficients of the polynomial through the values at the nodes. */
static inline void kg_zeros_enclose(const kg_real *g, kg_real *b) {
  const kg_real inner = KG_C(3.4142135623730950488), outer = KG_C(0.58578643762690495120);
  b[0] = g[0];
  b[1] = inner * g[1] - KG_C(1.75) * g[0] - g[2] + outer * g[3] - KG_C(0.25) * g[4];
  b[2] = (KG_C(7.0) * (g[0] + g[4]) - KG_C(16.0) * (g[1] + g[3]) + KG_C(24.0) * g[2]) / KG_C(6.0);
  b[3] = inner * g[3] - KG_C(1.75) * g[4] - g[2] + outer * g[1] - KG_C(0.25) * g[0];
  b[4] = g[4];
}

/* Value at x of the polynomial with n + 1 <= 5 Bernstein coefficients, by de Casteljau's algorithm. */
static inline kg_real kg_zeros_polynomial(int n, const kg_real *b, kg_real x) {
  kg_real c[KG_ZEROS_NODES];
  for (int i = 0; i <= n; ++i) {
    c[i] = b[i];
  }
  for (int level = n; level > 0; --level) {
    for (int i = 0; i < level; ++i) {
      c[i] += x * (c[i + 1] - c[i]);
    }
  }
  return c[0];
}

static inline kg_real kg_zeros_rounding(const kg_real *g) {
  kg_real largest = KG_C(0.0);
  for (int k = 0; k < KG_ZEROS_VALUES; ++k) {
    largest = KG_MAX(largest, KG_ABS(g[k]));
  }
  return KG_C(16.0) * KG_EPSILON * largest;
}

/* How far the polynomial may be from the function. */
static inline kg_real kg_zeros_margin(const kg_real *g, const kg_real *b) {
  const kg_real fourth = KG_C(0.25) * (KG_C(0.5) * (g[0] + g[4]) - g[1] + g[2] - g[3]);
  const kg_real third = KG_C(0.5) * (KG_C(0.5) * (g[0] - g[4]) - KG_C(0.70710678118654752440) * (g[1] - g[3]));
  const kg_real check = kg_zeros_polynomial(4, b, kg_zeros_place(5)) - g[5];
  return KG_C(0.25) * KG_ABS(fourth) + KG_ABS(third) / KG_C(64.0) + KG_C(4.0) * KG_ABS(check) +
         kg_zeros_rounding(g);
}

/* Whether n coefficients are all above the margin. */
static inline int kg_zeros_above(int n, const kg_real *b, kg_real margin) {
  for (int i = 0; i < n; ++i) {
    if (!(b[i] > margin)) {
      return 0;
    }
  }
  return 1;
}

/* Whether the coefficients keep their positive sign over the piece. At the ends, beside which no value shows a kink,
 * twice the margin is asked for. */
static inline int kg_zeros_positive(const kg_real *b, kg_real margin) {
  return b[0] > KG_C(2.0) * margin && b[4] > KG_C(2.0) * margin && kg_zeros_above(3, b + 1, margin);
}

/* Whether the values show at once that the sign `side` is kept. */
static inline int kg_zeros_keeps(const kg_real *g, int side) {
  kg_real signed_g[KG_ZEROS_VALUES], b[KG_ZEROS_NODES];
  for (int k = 0; k < KG_ZEROS_VALUES; ++k) {
    signed_g[k] = (kg_real)side * g[k];
  }
  kg_zeros_enclose(signed_g, b);
  return side != 0 && kg_zeros_positive(b, kg_zeros_margin(signed_g, b));
}

/* Whether a change from the sign `side` to the other one counts. */
static inline int kg_zeros_counts(const kg_zeros *s, int side) {
  return s->rule == KG_ANY || (s->rule == KG_RISING ? side < 0 : side > 0);
}

static inline int kg_zeros_report(kg_found *found, int kind, kg_real a, kg_real ga, kg_real b, kg_real gb) {
  found->kind = kind;
  found->a = a;
  found->b = b;
  found->ga = ga;
  found->gb = gb;
  return KG_ZEROS_FOUND;
}

/* A change of sign between a and b: reported, or remembered when it does not count. */
static inline int kg_zeros_cross(kg_zeros *s, kg_real a, kg_real ga, kg_real b, kg_real gb, kg_found *found) {
  if (kg_zeros_counts(s, s->side)) {
    return kg_zeros_report(found, KG_CROSSING, a, ga, b, gb);
  }
  s->side = -s->side;
  found->turn = b;
  return KG_ZEROS_CLEAR;
}

/* A piece at whose end the function is zero or has another sign. A zero at the very end of the last piece is a touch if
 * the function, followed a little further, turns back. */
static inline int kg_zeros_end(kg_zeros *s, const kg_piece *piece, kg_found *found) {
  if (piece->b >= KG_C(1.0) && KG_ABS(piece->g[4]) <= s->noise) {
    kg_real beyond;
    const int status = s->value(s->context, KG_C(1.0) + KG_ZEROS_BEYOND, &beyond);
    if (status >= 0 && (kg_real)s->side * beyond > s->noise) {
      return s->rule == KG_ANY ? kg_zeros_report(found, KG_TOUCH, piece->b, piece->g[4], piece->b, piece->g[4])
                               : KG_ZEROS_CLEAR;
    }
  }
  return kg_zeros_cross(s, piece->a, piece->g[0], piece->b, piece->g[4], found);
}

/* Whether the function, zero at the start of the piece, leaves zero with sign `side` and does not return: it is theta^m
 * times a polynomial without zero, m = 1, 2, 3. The error of interpolation divided by theta^m is that much larger. */
static inline int kg_zeros_leaves(const kg_zeros *s, const kg_real *b, kg_real margin, int side) {
  static const kg_real growth[4] = {KG_C(1.0), KG_C(50.0), KG_C(400.0), KG_C(1120.0)};
  static const kg_real binomial[5][5] = {{KG_C(1.0)},
                                         {KG_C(1.0), KG_C(1.0)},
                                         {KG_C(1.0), KG_C(2.0), KG_C(1.0)},
                                         {KG_C(1.0), KG_C(3.0), KG_C(3.0), KG_C(1.0)},
                                         {KG_C(1.0), KG_C(4.0), KG_C(6.0), KG_C(4.0), KG_C(1.0)}};
  const kg_real rounding = KG_C(64.0) * KG_EPSILON * KG_MAX(KG_MAX(KG_ABS(b[2]), KG_ABS(b[3])), KG_ABS(b[4]));
  for (int m = 1; m <= 3; ++m) {
    kg_real quotient[4];
    if (m > 1 && KG_ABS(b[m - 1]) > KG_MAX(s->noise, rounding)) {
      return 0;
    }
    for (int j = 0; j <= 4 - m; ++j) {
      quotient[j] = (kg_real)side * b[j + m] * binomial[4][j + m] / binomial[4 - m][j];
    }
    if (kg_zeros_above(5 - m, quotient, growth[m] * margin)) {
      return 1;
    }
  }
  return 0;
}

/* The function leaves the surface with this sign: an event if it jumped there from the other one. */
static inline int kg_zeros_leave(kg_zeros *s, const kg_piece *piece, int side, kg_found *found) {
  const int came = s->came;
  if (came != KG_CROSSED && side * came < 0 && kg_zeros_counts(s, came)) {
    s->side = came;
    return kg_zeros_report(found, KG_CROSSING, piece->a, piece->g[0], piece->a, piece->g[0]);
  }
  s->side = side;
  s->came = side != 0 ? 0 : came;
  return KG_ZEROS_CLEAR;
}

/* A piece that starts on the surface. */
static inline int kg_zeros_surface(kg_zeros *s, const kg_piece *piece, int final, kg_found *found) {
  kg_real b[KG_ZEROS_NODES], margin;
  int flat = 1;
  for (int k = 0; k < KG_ZEROS_VALUES; ++k) {
    flat = flat && KG_ABS(piece->g[k]) <= (k == 4 ? s->flat : KG_MAX(s->flat, s->swing));
  }
  kg_zeros_enclose(piece->g, b);
  /* Not one that crosses zero so fast that it would go further than that: it returns within the piece. */
  if (flat && !(s->came == KG_CROSSED && KG_C(4.0) * KG_ABS(b[1] - b[0]) > s->flat)) {
    return KG_ZEROS_CLEAR;
  }
  margin = kg_zeros_margin(piece->g, b);
  for (int side = -1; side <= 1; side += 2) {
    if (kg_zeros_leaves(s, b, margin, side)) {
      return kg_zeros_leave(s, piece, side, found);
    }
  }
  if (!final) {
    return KG_ZEROS_HALVE;
  }
  return kg_zeros_leave(s, piece, piece->g[4] > s->noise ? 1 : piece->g[4] < -s->noise ? -1 : 0, found);
}

/* Where the polynomial, which has one minimum in the piece, is least. */
static inline kg_real kg_zeros_lowest(const kg_real *b) {
  kg_real slope[4], low = KG_C(0.0), high = KG_C(1.0);
  for (int i = 0; i < 4; ++i) {
    slope[i] = b[i + 1] - b[i];
  }
  for (int i = 0; i < 60; ++i) {
    const kg_real x = KG_C(0.5) * (low + high);
    if (kg_zeros_polynomial(3, slope, x) < KG_C(0.0)) {
      low = x;
    } else {
      high = x;
    }
  }
  return KG_C(0.5) * (low + high);
}

/* Where the function, which has a kink in the shortest piece, is closest to zero: golden section. */
static inline int kg_zeros_kink(const kg_zeros *s, const kg_piece *piece, kg_real *place, kg_real *g) {
  const kg_real golden = KG_C(0.6180339887498949);
  kg_real low = piece->a, high = piece->b, x[2], value[2];
  int status = KG_OK;
  for (int k = 0; k < 2 && status >= 0; ++k) {
    x[k] = k == 0 ? high - golden * (high - low) : low + golden * (high - low);
    status = s->value(s->context, x[k], value + k);
  }
  for (int i = 0; i < 60 && status >= 0 && high - low > KG_C(4.0) * KG_EPSILON * high; ++i) {
    const int k = KG_ABS(value[0]) <= KG_ABS(value[1]) ? 0 : 1; /* which of the two stays */
    *(k == 0 ? &high : &low) = x[1 - k];
    x[1 - k] = x[k];
    value[1 - k] = value[k];
    x[k] = k == 0 ? high - golden * (high - low) : low + golden * (high - low);
    status = s->value(s->context, x[k], value + k);
  }
  *place = KG_ABS(value[0]) <= KG_ABS(value[1]) ? x[0] : x[1];
  *g = KG_ABS(value[0]) <= KG_ABS(value[1]) ? value[0] : value[1];
  return status;
}

/* A piece with one extremum towards zero between two ends of the sign `side`; b, with that sign. */
static inline int kg_zeros_dip(kg_zeros *s, const kg_piece *piece, const kg_real *b, kg_real margin, int final,
                              kg_found *found) {
  const kg_real x = kg_zeros_lowest(b);
  const kg_real expected = kg_zeros_polynomial(4, b, x);
  const kg_real touch = KG_MAX(KG_MAX(s->unit, s->noise), kg_zeros_rounding(piece->g));
  const int side = s->side;
  kg_real place = piece->a + x * (piece->b - piece->a), g;
  int status;
  if (expected > KG_C(2.0) * margin + s->unit && !(final && s->rule == KG_ANY)) { /* it may be a kink */
    return KG_ZEROS_CLEAR;
  }
  if (!final && margin > KG_MAX(s->noise, s->unit / KG_C(8.0)) && expected > -KG_C(2.0) * margin) {
    return KG_ZEROS_HALVE;
  }
  status = s->value(s->context, place, &g);
  if (status < 0) {
    return status;
  }
  if ((kg_real)side * g < -s->noise) {
    if (kg_zeros_counts(s, side)) {
      return kg_zeros_report(found, KG_CROSSING, piece->a, piece->g[0], place, g);
    }
    s->side = -side;
    found->turn = place;
    status = kg_zeros_cross(s, place, g, piece->b, piece->g[4], found);
    return status;
  }
  if (final && s->rule == KG_ANY && KG_ABS(g) > touch) {
    status = kg_zeros_kink(s, piece, &place, &g);
    if (status < 0) {
      return status;
    }
  }
  /* Not where it still falls at the end: that is no extremum, and what follows may cross zero. */
  if (s->rule == KG_ANY && KG_ABS(g) <= touch && !(KG_ABS(g) > KG_ABS(piece->g[4]))) {
    return kg_zeros_report(found, KG_TOUCH, place, g, place, g);
  }
  return !final && expected < KG_C(0.0) && (kg_real)side * g > s->unit ? KG_ZEROS_HALVE : KG_ZEROS_CLEAR;
}

/* Whether the function, zero to within `zero` at the end of the piece, turns there: it goes no further beyond zero; b,
 * positive before. */
static inline int kg_zeros_turns(const kg_real *b, kg_real zero) {
  const kg_real slope = KG_C(4.0) * (b[4] - b[3]), bend = KG_C(12.0) * (b[4] - KG_C(2.0) * b[3] + b[2]);
  return KG_ABS(b[4]) <= zero && bend > KG_C(0.0) && slope * slope <= KG_C(2.0) * bend * zero;
}

/* Decides one piece: KG_ZEROS_CLEAR, KG_ZEROS_FOUND, KG_ZEROS_HALVE (not when `final`) or a negative status. */
static inline int kg_zeros_judge(kg_zeros *s, const kg_piece *piece, int final, kg_found *found) {
  kg_real g[KG_ZEROS_VALUES], b[KG_ZEROS_NODES], falls[4], rises[4], bends[3], margin;
  if (s->side == 0) {
    return kg_zeros_surface(s, piece, final, found);
  }
  for (int k = 0; k < KG_ZEROS_VALUES; ++k) {
    g[k] = (kg_real)s->side * piece->g[k];
  }
  kg_zeros_enclose(g, b);
  margin = kg_zeros_margin(g, b);
  for (int i = 0; i < 4; ++i) {
    falls[i] = KG_C(4.0) * (b[i] - b[i + 1]);
    rises[i] = -falls[i];
  }
  for (int i = 0; i < 3; ++i) {
    bends[i] = KG_C(3.0) * (falls[i] - falls[i + 1]);
  }
  if (g[4] <= KG_C(0.0)) {
    if (kg_zeros_turns(b, KG_MAX(s->noise, kg_zeros_rounding(g)))) {
      return s->rule == KG_ANY
                 ? kg_zeros_report(found, KG_TOUCH, piece->b, piece->g[4], piece->b, piece->g[4])
                 : KG_ZEROS_CLEAR;
    }
    return final || kg_zeros_above(4, falls, KG_C(50.0) * margin)
               ? kg_zeros_end(s, piece, found)
               : KG_ZEROS_HALVE;
  }
  /* Where it fell before the piece, it may still turn next to the start, at a kink. */
  if (kg_zeros_positive(b, margin) ||
      (kg_zeros_above(4, rises, KG_C(50.0) * margin) && !(s->falling && s->rule == KG_ANY))) {
    return KG_ZEROS_CLEAR;
  }
  return final || kg_zeros_above(3, bends, KG_C(800.0) * margin) ? kg_zeros_dip(s, piece, b, margin, final, found)
                                                                 : KG_ZEROS_HALVE;
}

/* Compares the polynomial with one value more: KG_ZEROS_HALVE if it misses that by more than the margin, as it does
 * where six values of a fast oscillation look like those of a slow function by chance; else the verdict. */
static inline int kg_zeros_confirm(const kg_zeros *s, const kg_piece *piece, int verdict) {
  const kg_real x = KG_C(0.6180339887498949);
  kg_real b[KG_ZEROS_NODES], g, margin;
  const int status = s->value(s->context, piece->a + x * (piece->b - piece->a), &g);
  if (status < 0) {
    return status;
  }
  kg_zeros_enclose(piece->g, b);
  margin = KG_MAX(kg_zeros_margin(piece->g, b), s->noise);
  return KG_ABS(kg_zeros_polynomial(4, b, x) - g) <= margin ? verdict : KG_ZEROS_HALVE;
}

/* Decides one piece as kg_zeros_judge(), and confirms a zero that is found, and that there is none where the function
 * may oscillate fast. */
static inline int kg_zeros_decide(kg_zeros *s, const kg_piece *piece, int final, kg_found *found) {
  const int side = s->side, came = s->came;
  const kg_real turn = found->turn;
  int verdict = kg_zeros_judge(s, piece, final, found);
  if (!final && (verdict == KG_ZEROS_FOUND || (verdict == KG_ZEROS_CLEAR && s->restless))) {
    verdict = kg_zeros_confirm(s, piece, verdict);
    if (verdict == KG_ZEROS_HALVE) {
      s->side = side;
      s->came = came;
      found->kind = KG_NOTHING;
      found->turn = turn;
    }
  }
  return verdict;
}

/* The values of a piece that are not known yet: those between its ends. */
static inline int kg_zeros_fill(const kg_zeros *s, kg_piece *piece) {
  for (int k = 1; k < KG_ZEROS_VALUES; ++k) {
    if (k != 4) {
      const int status =
          s->value(s->context, piece->a + kg_zeros_place(k) * (piece->b - piece->a), piece->g + k);
      if (status < 0) {
        return status;
      }
    }
  }
  return KG_OK;
}

/* Divides a piece at a node, best the middle, but not where the function is zero: a zero at an end of both parts
 * could be lost or counted twice. */
static inline int kg_zeros_halve(const kg_zeros *s, const kg_piece *piece, kg_piece *left, kg_piece *right) {
  int node = 2, status;
  for (int k = 1; k < 4; k += 2) {
    if (KG_ABS(piece->g[node]) <= s->noise && KG_ABS(piece->g[k]) > KG_ABS(piece->g[node])) {
      node = k;
    }
  }
  left->a = piece->a;
  left->b = right->a = piece->a + kg_zeros_place(node) * (piece->b - piece->a);
  right->b = piece->b;
  left->g[0] = piece->g[0];
  left->g[4] = right->g[0] = piece->g[node];
  right->g[4] = piece->g[4];
  status = kg_zeros_fill(s, left);
  return status < 0 ? status : kg_zeros_fill(s, right);
}

/* Whether the function, which approached zero before the piece, turns at its start, where it is zero to within a unit. */
static inline int kg_zeros_touches(const kg_zeros *s, const kg_piece *piece) {
  const kg_real zero = KG_MAX(KG_MAX(s->unit, s->noise), kg_zeros_rounding(piece->g));
  return s->falling && s->rule == KG_ANY && s->side != 0 && KG_ABS(piece->g[0]) <= zero &&
         (kg_real)s->side * (piece->g[1] - piece->g[0]) > KG_C(0.0);
}

/* Whether the function moves away from the surface at all. */
static inline int kg_zeros_moves(const kg_zeros *s, const kg_piece *whole) {
  int moves = 0;
  for (int k = 0; k < KG_ZEROS_VALUES; ++k) {
    moves = moves || KG_ABS(whole->g[k]) > s->flat;
  }
  return moves;
}

/* Whether all values count as zero: parts of the piece would show rounding only. */
static inline int kg_zeros_vanishes(const kg_zeros *s, const kg_piece *piece) {
  int vanishes = 1;
  for (int k = 0; k < KG_ZEROS_VALUES; ++k) {
    vanishes = vanishes && KG_ABS(piece->g[k]) <= s->noise;
  }
  return vanishes;
}

/* The first zero that counts in a piece with its six values. Returns KG_OK, with found->kind KG_NOTHING when there is
 * none before the limit, or a negative status of the function. s->side becomes the sign at the end of the piece, or
 * that before the zero. */
static inline int kg_zeros_first(kg_zeros *s, const kg_piece *whole, kg_found *found) {
  const int moves = kg_zeros_moves(s, whole);
  kg_piece pending[KG_ZEROS_PIECES];
  int count = 1;
  pending[0] = *whole;
  found->kind = KG_NOTHING;
  found->turn = KG_C(-1.0);
  while (count > 0 && pending[count - 1].a <= s->limit) {
    const kg_piece piece = pending[--count];
    const int final = piece.b - piece.a <= s->shortest || count > KG_ZEROS_PIECES - 2 ||
                      s->effort > KG_ZEROS_EFFORT || kg_zeros_vanishes(s, &piece);
    int verdict = kg_zeros_decide(s, &piece, final, found);
    if (verdict == KG_ZEROS_HALVE) {
      ++s->effort;
      s->restless = 1;
      verdict = kg_zeros_halve(s, &piece, pending + count + 1, pending + count);
      count += 2;
    }
    if (verdict == KG_ZEROS_CLEAR) {
      if (kg_zeros_touches(s, &piece)) {
        verdict = kg_zeros_report(found, KG_TOUCH, piece.a, piece.g[0], piece.a, piece.g[0]);
      }
      s->falling = moves && KG_ABS(piece.g[4]) < KG_ABS(piece.g[3]);
    }
    if (verdict < 0 || verdict == KG_ZEROS_FOUND) {
      return verdict < 0 ? verdict : KG_OK;
    }
  }
  return KG_OK;
}

/* Where the sign changes between found->a and found->b: T. R. Chandrupatla, Advances in Engineering Software 28 (1997)
 * 145-149, bisection and inverse quadratic interpolation where that is safe. found->b becomes the place, where the
 * function is zero or has changed its sign, at most `accuracy` after the change; found->gb the value there.
 * Returns KG_OK or a negative status of the function. */
static inline int kg_zeros_root(const kg_zeros *s, kg_found *found, kg_real accuracy) {
  const int after = found->ga > KG_C(0.0) ? -1 : 1;
  kg_real a = found->b, fa = found->gb, b = found->a, fb = found->ga, c, fc, fraction = KG_C(0.5);
  for (int i = 0; i < 200; ++i) {
    const kg_real tolerance = KG_C(0.5) * accuracy + KG_C(2.0) * KG_EPSILON * KG_ABS(a);
    const kg_real x = a + fraction * (b - a);
    kg_real f, xi, phi;
    int status;
    if (KG_ABS(b - a) <= KG_C(2.0) * tolerance || fa == KG_C(0.0) || x == a || x == b) {
      break;
    }
    status = s->value(s->context, x, &f);
    if (status < 0) {
      return status;
    }
    if ((f > KG_C(0.0)) == (fa > KG_C(0.0))) {
      c = a;
      fc = fa;
    } else {
      c = b;
      fc = fb;
      b = a;
      fb = fa;
    }
    a = x;
    fa = f;
    if ((kg_real)after * f >= KG_C(0.0)) {
      found->b = x;
      found->gb = f;
    }
    xi = (a - b) / (c - b);
    phi = (fa - fb) / (fc - fb);
    fraction = KG_C(0.5);
    if (phi * phi < xi && (KG_C(1.0) - phi) * (KG_C(1.0) - phi) < KG_C(1.0) - xi) {
      fraction = fa / (fb - fa) * fc / (fb - fc) + (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb);
    }
    fraction = KG_MIN(KG_MAX(fraction, tolerance / KG_ABS(b - a)), KG_C(1.0) - tolerance / KG_ABS(b - a));
  }
  return KG_OK;
}

#ifdef __cplusplus
}
#endif

#endif
