/* cortex_m.c - start-up code, output and clock of the MPS2 boards with a Cortex-M processor.
 *
 * Output and exit are semihosting calls (bkpt 0xab): the emulator performs them. The clock is SysTick at the 25 MHz of
 * the processor, 24 bits wide.
 */
#include "board.h"

#define CPACR (*(volatile uint32_t *)0xE000ED88) /* access to coprocessors 10 and 11: the floating-point unit */
#define SYST_CSR (*(volatile uint32_t *)0xE000E010)
#define SYST_RVR (*(volatile uint32_t *)0xE000E014)
#define SYST_CVR (*(volatile uint32_t *)0xE000E018)
#define LAST_TICK 0xFFFFFFu

enum { WRITE0 = 0x04, EXIT_EXTENDED = 0x20, APPLICATION_EXIT = 0x20026 };

extern uint32_t data_source[], data_start[], data_end[], bss_start[], bss_end[], stack_top[];

int main(void);
void board_reset(void);

static void fault(void) { board_exit(BOARD_FAULT); }

__attribute__((section(".vectors"), used)) static const struct {
  uint32_t *stack;
  void (*handlers[15])(void);
} vectors = {stack_top, {board_reset, fault, fault, fault, fault, fault}};

void board_reset(void)
{
  const uint32_t *from = data_source;
  for (uint32_t *to = data_start; to < data_end; to++) {
    *to = *from++;
  }
  for (uint32_t *to = bss_start; to < bss_end; to++) {
    *to = 0;
  }
  CPACR |= 0xFu << 20;
  __asm volatile("dsb\n\tisb");
  SYST_RVR = LAST_TICK;
  SYST_CVR = 0;
  SYST_CSR = 5; /* on, without interrupts, at the clock of the processor */
  board_exit(main());
}

static void ask_host(uint32_t operation, const void *argument)
{
  register uint32_t r0 __asm("r0") = operation;
  register const void *r1 __asm("r1") = argument;
  __asm volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
}

void board_write(const char *text) { ask_host(WRITE0, text); }

void board_exit(int status)
{
  const uint32_t block[2] = {APPLICATION_EXIT, (uint32_t)status};
  ask_host(EXIT_EXTENDED, block);
  for (;;) {
  }
}

uint32_t board_ticks(void) { return LAST_TICK - SYST_CVR; }
