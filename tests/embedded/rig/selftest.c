/* selftest.c - runs the self-test of an emitted project; MODEL is the prefix of its symbols.
 *
 * The self-test is compiled with KG_SELFTEST_NO_MAIN, because a board passes no arguments to main.
 */
#define JOIN_NAMES(model, name) model##_##name
#define JOIN(model, name) JOIN_NAMES(model, name)

int JOIN(MODEL, selftest)(void);

int main(void) { return JOIN(MODEL, selftest)() > 0; }
