package main

import (
	"errors"
	"fmt"

	"gcsup/internal/cli/cmdline"
)

// memoryFlag is an amount of memory. A small number without a unit is refused, and so is 0, which
// would select the default.
type memoryFlag struct{ cmdline.Size }

func (f *memoryFlag) Set(text string) error {
	if n, ok := withoutUnit(text); ok && n > 0 && n < small {
		return fmt.Errorf("want a unit, such as %sMiB", text)
	}
	var size cmdline.Size
	if err := size.Set(text); err != nil || size == 0 {
		return errors.New("want a size such as 64MiB")
	}
	f.Size = size
	return nil
}

// String returns the value as Set reads it.
func (f *memoryFlag) String() string { return exactText(f.Size) }
