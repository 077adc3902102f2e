/* board.h - what a program of the tests needs of the machine it runs on: a microcontroller under QEMU, or this computer.
 *
 * board_reset, which the linker script makes the entry, sets up memory and floating point, calls main, and ends the
 * emulator with what main returns.
 */
#ifndef BOARD_H
#define BOARD_H

#include <stdint.h>

#define BOARD_FAULT 70 /* the exit status after an exception of the processor */

void board_write(const char *text);
void board_exit(int status);

/* A clock that advances by the same amount with every instruction (docs/embedded.md). It may wrap at 24 bits. */
uint32_t board_ticks(void);

/* The lowest address of the stack, and the stack pointer of the calling function. */
extern uint32_t board_stack_bottom[];

#if defined(__arm__)
#define BOARD_STACK_POINTER(address) __asm volatile("mov %0, sp" : "=r"(address))
#elif defined(__riscv)
#define BOARD_STACK_POINTER(address) __asm volatile("mv %0, sp" : "=r"(address))
#endif

#endif
