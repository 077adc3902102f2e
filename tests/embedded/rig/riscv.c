/* riscv.c - start-up code, output and clock of QEMU's RISC-V machine "virt", 32 or 64 bits, in machine mode.
 *
 * Output and exit are semihosting calls: the emulator performs them. The clock is minstret, the number of instructions.
 */
#include "board.h"

enum { WRITE0 = 0x04, EXIT_EXTENDED = 0x20, APPLICATION_EXIT = 0x20026 };

extern uint32_t bss_start[], bss_end[];

int main(void);
void board_ask_host(long operation, const void *argument);

/* The call is recognized by these three instructions in one page, none of them compressed. */
__asm(".section .text.board_ask_host, \"ax\"\n"
      ".option push\n"
      ".option norvc\n"
      ".balign 16\n"
      ".global board_ask_host\n"
      "board_ask_host:\n"
      "  slli zero, zero, 0x1f\n"
      "  ebreak\n"
      "  srai zero, zero, 7\n"
      "  ret\n"
      ".option pop\n"
      ".text\n");

/* FS, 2 bits from 0x2000 of mstatus, switches the floating-point unit on. */
__attribute__((naked, section(".start"), used)) void board_reset(void)
{
  __asm volatile(
      ".option push\n\t"
      ".option norelax\n\t"
      "la gp, __global_pointer$\n\t"
      ".option pop\n\t"
      "la sp, stack_top\n\t"
      "li t0, 0x6000\n\t"
      "csrs mstatus, t0\n\t"
      "la t0, board_fault\n\t"
      "csrw mtvec, t0\n\t"
      "j board_main");
}

__attribute__((used)) static void board_main(void)
{
  for (uint32_t *to = bss_start; to < bss_end; to++) {
    *to = 0;
  }
  board_exit(main());
}

__attribute__((used, aligned(4))) static void board_fault(void) { board_exit(BOARD_FAULT); }

void board_write(const char *text) { board_ask_host(WRITE0, text); }

void board_exit(int status)
{
  const long block[2] = {APPLICATION_EXIT, status};
  board_ask_host(EXIT_EXTENDED, block);
  for (;;) {
  }
}

uint32_t board_ticks(void)
{
  unsigned long count;
  __asm volatile("csrr %0, minstret" : "=r"(count));
  return (uint32_t)count;
}
