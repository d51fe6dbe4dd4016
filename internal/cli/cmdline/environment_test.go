package cmdline

import (
	"slices"
	"testing"

	"github.com/spf13/cobra"
)

func TestMentions(t *testing.T) {
	for _, c := range []struct {
		text string
		want bool
	}{{"--rate 1: no", true}, {"no --rate", true}, {"--rate-too 1", false}, {"--rated --rate", true}, {"rate", false}} {
		if got := mentions(c.text, "--rate"); got != c.want {
			t.Errorf("mentions(%q) = %v, want %v", c.text, got, c.want)
		}
	}
}

func TestUnknown(t *testing.T) {
	root, sub := &cobra.Command{Use: "gcsup"}, &cobra.Command{Use: "cp"}
	root.AddCommand(sub)
	sub.Flags().Int("limit-rate", 0, "")
	environ := []string{"GCSUP_LIMIT_RATE=1", "GCSUP_LIMITRATE=secret", "GCSUP_TEST_FULL=1", "GCSUP_NATS=x", "GCSUP_KEY=x", "GCSUP_A=1", "GCSUP_EMPTY=", "PATH=x", "XGCSUP_B=1"}
	got := UnknownVariables(root, environ, []string{"GCSUP_KEY"})
	if !slices.Equal(got, []string{"GCSUP_A", "GCSUP_LIMITRATE"}) {
		t.Errorf("unknown variables %q", got)
	}
}
