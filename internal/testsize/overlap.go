package testsize

import (
	"flag"
	"runtime"
	"strconv"
)

// Overlap lets twice as many parallel tests run at a time as there are processors,
// unless -parallel is given. It is for packages whose tests wait for the disk or for
// other processes. TestMain calls it before the flags are parsed.
func Overlap() {
	_ = flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0)))
}
