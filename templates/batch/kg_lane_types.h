/* kg_lane_types.h - the vectors of code on lanes, and the record of a direction.
 */
#ifndef KG_LANE_TYPES_H
#define KG_LANE_TYPES_H

#if !defined(__GNUC__)
#error "batch evaluation needs the vector extensions of GCC or Clang"
#endif

#if defined(__AVX512F__)
#define KG_LANES 8
#define KG_SAME(x) {x, x, x, x, x, x, x, x}
#elif defined(__AVX__)
#define KG_LANES 4
#define KG_SAME(x) {x, x, x, x}
#else /* SSE2, NEON */
#define KG_LANES 2
#define KG_SAME(x) {x, x}
#endif
#define KG_INLINE static inline __attribute__((always_inline, unused))

typedef double kg_lanes __attribute__((vector_size(8 * KG_LANES)));
typedef long long kg_mask __attribute__((vector_size(8 * KG_LANES))); /* of a lane: 0, or -1 with all bits set */

#endif
