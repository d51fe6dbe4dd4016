package cmdline

import (
	"errors"
	"fmt"
	"math"

	"github.com/dustin/go-humanize"
)

// Size is the value of a flag such as 8MiB, in bytes. Units are those of
// IEC 80000-13: MiB is 2^20 bytes, MB is 10^6 bytes.
type Size int64

// Type names the type in the help.
func (f *Size) Type() string { return "SIZE" }

// String returns the value as Set reads it, exactly.
func (f *Size) String() string {
	n := int64(*f)
	switch {
	case n == 0:
		return "" // pflag then shows no default
	case n%(1<<30) == 0:
		return fmt.Sprintf("%dGiB", n>>30)
	case n%(1<<20) == 0:
		return fmt.Sprintf("%dMiB", n>>20)
	case n%(1<<10) == 0:
		return fmt.Sprintf("%dKiB", n>>10)
	}
	return fmt.Sprint(n)
}

// ErrSize is the error of Set.
var ErrSize = errors.New("want a size such as 8MiB")

// Set parses text.
func (f *Size) Set(text string) error {
	n, err := humanize.ParseBytes(text)
	if err != nil || n > math.MaxInt64 {
		return ErrSize
	}
	*f = Size(n)
	return nil
}
