/* known.c - calls with known numbers of instructions and known needs of stack, to test the measurement itself; it ends
 * with an exception of the processor. */
#include "measure.h"

#define TEN_INSTRUCTIONS __asm volatile("nop\n\tnop\n\tnop\n\tnop\n\tnop\n\tnop\n\tnop\n\tnop\n\tnop\n\tnop")

static void nops_10(void) { TEN_INSTRUCTIONS; }

static void nops_30(void)
{
  TEN_INSTRUCTIONS;
  TEN_INSTRUCTIONS;
  TEN_INSTRUCTIONS;
}

/* 100000 instructions, two each time. */
static void loop(void)
{
  uint32_t n = 50000;
#if defined(__arm__)
  __asm volatile("1: subs %0, %0, #1\n\tbne 1b" : "+r"(n) : : "cc");
#else
  __asm volatile("1: addi %0, %0, -1\n\tbnez %0, 1b" : "+r"(n));
#endif
}

static void stack_1000(void)
{
  volatile unsigned char array[1000];
  for (int k = 0; k < 1000; k++) {
    array[k] = (unsigned char)k;
  }
  (void)array[0];
}

static void floating(void)
{
  volatile float x = 2.0f;
  volatile double y = 2.0;
  x = x * x;
  y = y * y;
  report("four", (uint32_t)x);
  report("four", (uint32_t)y);
}

static void fault(void)
{
#if defined(__arm__)
  __asm volatile("udf #0");
#else
  __asm volatile("unimp");
#endif
}

int main(void)
{
  static int zero;
  static int seven = 7;
  report("nothing", measure(measure_nothing).ticks);
  report("nothing", measure(measure_nothing).ticks);
  report("10", measure(nops_10).ticks);
  report("30", measure(nops_30).ticks);
  report("loop", measure(loop).ticks);
  report("stack", measure(measure_nothing).stack);
  report("stack", measure(stack_1000).stack);
  report("zero", (uint32_t)zero);
  report("seven", (uint32_t)seven);
  floating();
  measure(fault);
  return 0;
}
