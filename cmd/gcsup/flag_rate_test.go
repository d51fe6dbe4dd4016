package main

import (
	"testing"

	"github.com/spf13/pflag"
)

// TestSmallNumbersNeedUnits checks the flags for which a small number without a unit is most
// likely a mistake.
func TestSmallNumbersNeedUnits(t *testing.T) {
	for _, c := range []struct {
		make func() pflag.Value
		text string
		want string // String() of the value; "refused" if there is none
	}{
		{func() pflag.Value { return new(rateFlag) }, "0", "0"},
		{func() pflag.Value { return new(rateFlag) }, "1024", "1KiB"},
		{func() pflag.Value { return new(rateFlag) }, "5.5KiB", "5632"},
		{func() pflag.Value { return new(rateFlag) }, "500B", "500B"},
		{func() pflag.Value { return new(rateFlag) }, "500", "refused"},
		{func() pflag.Value { return new(rateFlag) }, "5.5", "refused"},
		{func() pflag.Value { return new(rateFlag) }, "5,5", "refused"},
		{func() pflag.Value { return new(rateFlag) }, "nan", "refused"},
		{func() pflag.Value { return new(memoryFlag) }, "64MiB", "64MiB"},
		{func() pflag.Value { return new(memoryFlag) }, "64B", "64B"},
		{func() pflag.Value { return new(memoryFlag) }, "64", "refused"},
		{func() pflag.Value { return new(memoryFlag) }, "0", "refused"},
		{func() pflag.Value { return new(memoryFlag) }, "0MiB", "refused"},
		{func() pflag.Value { return new(memoryFlag) }, "much", "refused"},
	} {
		f := c.make()
		err := f.Set(c.text)
		if (err != nil) != (c.want == "refused") || err == nil && f.String() != c.want {
			t.Errorf("%T %s: %s, %v; want %s", f, c.text, f.String(), err, c.want)
		}
	}
}
