package main

import (
	"fmt"
	"strconv"

	"gcsup/internal/cli/cmdline"
)

// rateFlag is a rate in bytes per second. A small number without a unit is refused: for other
// programs such a number is in KiB.
type rateFlag struct{ cmdline.Size }

const smallRate = 1 << 10

func (f *rateFlag) Set(text string) error {
	n, err := strconv.ParseUint(text, 10, 64)
	if err == nil && n > 0 && n < smallRate {
		return fmt.Errorf("want a unit, such as %sKiB, or %[1]sB for bytes", text)
	}
	return f.Size.Set(text)
}

// String returns the value as Set reads it.
func (f *rateFlag) String() string {
	if f.Size > 0 && f.Size < smallRate {
		return fmt.Sprintf("%dB", int64(f.Size))
	}
	return f.Size.String()
}
