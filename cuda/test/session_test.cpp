#include "test/device_test.h"
void test_sessions(bool) {}
