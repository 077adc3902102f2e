/* console.c - what the C libraries need so that printf writes to the console of the board. */
#include "board.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#if defined(__PICOLIBC__)

static int put(char c, FILE *file)
{
  const char text[2] = {c, '\0'};
  (void)file;
  board_write(text);
  return (unsigned char)c;
}

static FILE console = FDEV_SETUP_STREAM(put, NULL, NULL, _FDEV_SETUP_WRITE);
FILE *const stdout = &console;
FILE *const stderr = &console;

#else

/* newlib: the calls of an operating system that its printf makes. Its buffers come from the memory after the data. */
int _write(int file, const char *text, int length);
void *_sbrk(int size);
int _fstat(int file, struct stat *status);
int _isatty(int file);
int _close(int file);
int _lseek(int file, int offset, int origin);
int _read(int file, char *text, int length);
int _getpid(void);
int _kill(int process, int signal);
void _exit(int status);

extern char end[];

int _write(int file, const char *text, int length)
{
  (void)file;
  for (int k = 0; k < length; k++) {
    const char character[2] = {text[k], '\0'};
    board_write(character);
  }
  return length;
}

void *_sbrk(int size)
{
  static char *next = end;
  char *const block = next;
  if (size > (char *)board_stack_bottom - next) {
    errno = ENOMEM;
    return (void *)-1;
  }
  next += size;
  return block;
}

int _fstat(int file, struct stat *status)
{
  (void)file;
  status->st_mode = S_IFCHR;
  return 0;
}

int _isatty(int file) { return file >= 0; }

int _close(int file) { return file < 0 ? 0 : -1; }

int _lseek(int file, int offset, int origin) { return file < 0 ? offset + origin : 0; }

int _read(int file, char *text, int length)
{
  (void)file;
  (void)text;
  return length < 0 ? -1 : 0;
}

int _getpid(void) { return 1; }

int _kill(int process, int signal) { return process == signal ? 0 : -1; }

void _exit(int status) { board_exit(status); }

#endif
