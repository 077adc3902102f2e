/* measure.h - the instructions that a call executes and the stack that it needs, and the output of numbers. */
#ifndef MEASURE_H
#define MEASURE_H

#include "board.h"

#define MEASURE_PAINT 0xA5A5A5A5u

typedef struct {
  uint32_t ticks; /* of board_ticks */
  uint32_t stack; /* bytes below the stack pointer of the caller that the call changed */
} measurement;

static inline void write_number(uint32_t value)
{
  char text[12];
  char *digit = text + sizeof text - 1;
  *digit = '\0';
  do {
    *--digit = (char)('0' + value % 10u);
    value /= 10u;
  } while (value > 0u);
  board_write(digit);
}

/* A line: a name and a number. */
static inline void report(const char *name, uint32_t value)
{
  board_write(name);
  board_write(" ");
  write_number(value);
  board_write("\n");
}

/* A line: a name and the bytes of an object in hexadecimal digits. */
static inline void report_bytes(const char *name, const void *object, uint32_t size)
{
  const unsigned char *bytes = (const unsigned char *)object;
  board_write(name);
  board_write(" ");
  for (uint32_t k = 0; k < size; k++) {
    const char text[3] = {"0123456789abcdef"[bytes[k] >> 4], "0123456789abcdef"[bytes[k] & 15], '\0'};
    board_write(text);
  }
  board_write("\n");
}

/* Paints the free part of the stack, calls, and looks how far down the paint is gone. */
__attribute__((noinline)) static measurement measure(void (*call)(void))
{
  measurement result = {0, 0};
#ifdef BOARD_STACK_POINTER
  volatile uint32_t *top;
  volatile uint32_t *deepest = board_stack_bottom;
  BOARD_STACK_POINTER(top);
  for (volatile uint32_t *word = board_stack_bottom; word < top; word++) {
    *word = MEASURE_PAINT;
  }
#endif
  const uint32_t start = board_ticks();
  call();
  result.ticks = (board_ticks() - start) & 0xFFFFFFu;
#ifdef BOARD_STACK_POINTER
  while (deepest < top && *deepest == MEASURE_PAINT) {
    deepest++;
  }
  result.stack = (uint32_t)((top - deepest) * (int)sizeof *top);
#endif
  return result;
}

/* What measure counts around a call that does nothing. */
__attribute__((noinline)) static void measure_nothing(void) { __asm volatile(""); }

#endif
