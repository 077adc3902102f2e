/* kg_direction.h - the arguments of a function that is differentiated along directions on lanes.
 *
 * What does not depend on the direction is known as numbers, which all lanes share.
 */
#ifndef KG_DIRECTION_H
#define KG_DIRECTION_H

#include "kg_lane_types.h"
#include "kg_model.h"

/* Where the function is evaluated, and along which directions. */
typedef struct {
  kg_point point;
  const kg_lanes *lanes_change; /* of y, the inputs and the contact forces */
  const kg_lanes *lanes_p;      /* of the parameters */
  const kg_lanes *lanes_c;      /* constants, of which those that depend on the direction are read */
  kg_lanes *lanes_kept;         /* scratch */
  kg_lanes *lanes_out;          /* the changes of the values */
} kg_direction;

/* Writes the changes to lanes_out. The numbers of the state begin work; out is not used. */
void kg_evaluate_changes(const kg_direction *at, const double *p, double *work, double *out);

#endif
