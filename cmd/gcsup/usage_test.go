package main

import (
	"io"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"gcsup/internal/cli/exit"
)

// TestBadFlagValues checks that the error for a bad value of any flag contains the
// value and the accepted values, in this program's words.
func TestBadFlagValues(t *testing.T) {
	const bad = "no such value"
	fresh := func() stdio { return stdio{strings.NewReader(""), io.Discard, io.Discard} }
	root, _ := newRoot(fresh())
	for _, cmd := range leaves(root) {
		words := strings.Fields(cmd.CommandPath())[1:]
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Value.Set(bad) == nil {
				return
			}
			var messages strings.Builder
			std := fresh()
			std.err = &messages
			code := execute(t.Context(), append(words, "--"+f.Name+"="+bad), std)
			text := messages.String()
			want := `gcsup: --` + f.Name + ` "` + bad + `": want `
			if code != exit.Usage || !strings.HasPrefix(text, want) || strings.Contains(text, "strconv") || strings.Count(text, "\n") != 1 {
				t.Errorf("%s: exit code %d, %q; want %d, %q...", cmd.CommandPath(), code, text, exit.Usage, want)
			}
		})
	}
}
