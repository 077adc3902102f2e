/* steps.c - steps an emitted project from its start, measures each step and prints the states.
 *
 * Defined by the command line: MODEL (the prefix of its symbols), HEADER ("MODEL.h"), STEPS, DT, and CONTROL if inputs are
 * computed by MODEL_control before each step.
 */
#include HEADER
#include "measure.h"

#define JOIN_NAMES(model, name) model##_##name
#define JOIN(model, name) JOIN_NAMES(model, name)
#define NAME(name) JOIN(MODEL, name)

static NAME(context) simulation;
static int status;

static void step(void)
{
#ifdef CONTROL
  NAME(real) inputs[NAME(N_R)];
  const int computed = NAME(control)(&simulation, inputs);
  status = computed < 0 ? computed : NAME(step)(&simulation, inputs, (NAME(real))DT);
#else
  status = NAME(step)(&simulation, 0, (NAME(real))DT);
#endif
}

int main(void)
{
  uint32_t stack = 0;
  status = NAME(init)(&simulation, 0);
  report("nothing", measure(measure_nothing).ticks);
  for (int k = 0; k < STEPS && status >= 0; k++) {
    const measurement cost = measure(step);
    report("step", cost.ticks);
    report_bytes("state", simulation.y, sizeof simulation.y);
    stack = cost.stack > stack ? cost.stack : stack;
  }
  report("stack", stack);
  report("context", (uint32_t)sizeof simulation);
  if (status < 0) {
    board_write(NAME(status_message)(status));
    board_write("\n");
  }
  return status < 0 ? 1 : 0;
}
