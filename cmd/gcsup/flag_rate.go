package main

import (
	"fmt"
	"strconv"
	"strings"

	"gcsup/internal/cli/cmdline"
)

// rateFlag is a rate in bytes per second. A small number without a unit is refused: for other
// programs such a number is in KiB.
type rateFlag struct{ cmdline.Size }

func (f *rateFlag) Set(text string) error {
	if n, ok := withoutUnit(text); ok && n > 0 && n < small {
		return fmt.Errorf("want a unit, such as %sKiB, or %[1]sB for bytes", text)
	}
	return f.Size.Set(text)
}

// String returns the value as Set reads it.
func (f *rateFlag) String() string {
	if f.Size == 0 {
		return "0"
	}
	return exactText(f.Size)
}

// small is the number of bytes below which a flag needs a unit.
const small = 1 << 10

// withoutUnit returns a number of bytes. ok is false if it has a unit.
func withoutUnit(text string) (n float64, ok bool) {
	n, err := strconv.ParseFloat(strings.ReplaceAll(text, ",", ""), 64) // as cmdline.Size
	return n, err == nil
}

// exactText returns a number of bytes with a unit if it is small.
func exactText(f cmdline.Size) string {
	if f > 0 && f < small {
		return fmt.Sprintf("%dB", int64(f))
	}
	return f.String()
}
