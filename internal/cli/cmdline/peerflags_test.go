package cmdline

import (
	"fmt"
	"testing"

	"github.com/spf13/cobra"
)

// TestPeerAdvice checks that advice is given only for a command that has the flags in it.
func TestPeerAdvice(t *testing.T) {
	root, cp, ls := &cobra.Command{Use: "gcsup"}, &cobra.Command{Use: "cp"}, &cobra.Command{Use: "ls"}
	root.AddCommand(cp, ls)
	cp.Flags().String("limit-rate", "", "")
	cp.Flags().String("retry-for", "", "") // and no --max-wait
	const use = "use --limit-rate, such as --limit-rate 20MiB"
	for _, c := range []struct {
		cmd        *cobra.Command
		name, want string
	}{{cp, "bwlimit", use}, {root, "bwlimit", use}, {ls, "bwlimit", ""}, {cp, "retries", ""}, {root, "transfers", ""}, {cp, "frobnicate", ""}} {
		if got := peerAdvice(c.cmd, c.name); got != c.want {
			t.Errorf("%s --%s: %q, want %q", c.cmd.Name(), c.name, got, c.want)
		}
	}
	seen := map[string]bool{}
	for _, p := range peerFlags {
		if len(p.needs) == 0 {
			t.Errorf("%q: no flag of a command for which the advice is right", p.names)
		}
		for _, name := range p.names {
			if key := fmt.Sprint(name, p.needs); seen[key] {
				t.Errorf("%s is in the table twice for the same commands", name)
			} else {
				seen[key] = true
			}
		}
	}
}
