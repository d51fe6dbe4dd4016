package session_test

import "os"

// fullTests reports whether tests cover all cases that they have. .ci/run sets the
// variable. Without it the long tests cover fewer cases.
var fullTests = os.Getenv("GCSUP_TEST_FULL") != ""
