package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/spf13/cobra"

	"gcsup/internal/cli/cmdline"
	"gcsup/internal/cli/exit"
)

// TestBadFlagValues checks that the error for a bad value of any flag contains the
// value and the accepted values, in this program's words.
func TestBadFlagValues(t *testing.T) {
	const bad = "no such value"
	for _, cmd := range leaves(commands()) {
		words := strings.Fields(cmd.CommandPath())[1:]
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Value.Set(bad) == nil {
				return
			}
			code, _, text := gcsup(t, append(words, "--"+f.Name+"="+bad)...)
			want := `gcsup: --` + f.Name + ` "` + bad + `": want `
			if code != exit.Usage || !strings.HasPrefix(text, want) || strings.Contains(text, "strconv") || strings.Count(text, "\n") != 1 {
				t.Errorf("%s: exit code %d, %q; want %d, %q...", cmd.CommandPath(), code, text, exit.Usage, want)
			}
		})
	}
}

// TestPeerFlags checks that a flag of another tool is refused with advice, that the advice names flags
// that exist, and that the command does not have the flag itself.
func TestPeerFlags(t *testing.T) {
	for command, atLeast := range map[string]int{"cp": 200, "sync": 190} {
		cmd := commandOf(t, command)
		names := slices.DeleteFunc(cmdline.PeerFlags(cmd), func(name string) bool {
			return name == "h" || cmd.Flags().Lookup(name) != nil || len(name) == 1 && cmd.Flags().ShorthandLookup(name) != nil
		})
		if len(names) < atLeast {
			t.Errorf("%s has advice about %d flags", command, len(names))
		}
		testPeerFlags(t, cmd, names)
	}
}

func testPeerFlags(t *testing.T, cp *cobra.Command, names []string) {
	flag := regexp.MustCompile(`--([a-z-]+)`)
	for _, name := range names {
		word := "--" + name
		if len(name) == 1 {
			word = "-" + name
		}
		code, _, messages := gcsup(t, cp.Name(), word, "a", "gs://demo")
		advice, ok := strings.CutPrefix(messages, "gcsup: unknown flag "+word+": ")
		if code != exit.Usage || !ok || strings.Count(advice, "\n") != 1 {
			t.Errorf("%s: exit code %d, %q", word, code, messages)
		}
		for _, m := range flag.FindAllStringSubmatch(advice, -1) {
			if cp.Flags().Lookup(m[1]) == nil {
				t.Errorf("%s: %s has no --%s: %q", word, cp.Name(), m[1], advice)
			}
		}
	}
}
