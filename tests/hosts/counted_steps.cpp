/* Prints the operations of each step of an emitted project, whose scalar type is a counting number.
 *
 * NAME: the stem of the project, in whose header the scalar type is kg_real; STEPS: the number of steps of 1/1024 s.
 */
#include "counted.h"

#include <cstdio>

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define IN(name) JOIN(NAME, name)
#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
/* The class has no volatile copies; here, the word only keeps compilers from reading values earlier. */
#define volatile
#include TEXT(NAME.c)

int main()
{
  static IN(_context) ctx;
  int status = IN(_init)(&ctx, NULL);
  for (int k = 0; k < STEPS && status >= 0; k++) {
    operations = 0;
    status = IN(_step)(&ctx, NULL, 1.0 / 1024.0);
    std::printf("%ld\n", operations);
  }
  return status < 0;
}
