// Command gcsup-fleet lets many machines upload one tree together. See fleet/README.md, or
// run gcsup-fleet help.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"gcsup/internal/cli/cmdline"
	"gcsup/internal/cli/exit"
	"gcsup/internal/cli/process"
)

func main() {
	os.Exit(process.Run(func(ctx context.Context) int {
		process.StartedAs(os.Args[0])
		return execute(ctx, os.Args[1:], stdio{os.Stdout, os.Stderr})
	}))
}

// stdio holds the standard streams of a command. Results go to out, messages for people
// go to err.
type stdio struct{ out, err io.Writer }

// execute runs one command line and returns its exit code.
func execute(ctx context.Context, args []string, std stdio) int {
	root, started := newRoot(std)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exit.OK
	}
	if code, ok := errors.AsType[exit.Printed](err); ok {
		return int(code)
	}
	if !*started && !errors.Is(err, exit.ErrUsage) { // an error of cobra
		err = exit.Usagef("%w; see %s", err, cmdline.HelpOf(root))
	}
	std.message("%v", exit.WithHint(cmdline.Explain(cmd, err), "", "gcsup"))
	return exitCodeOf(err)
}

// message prints a line for people.
func (s stdio) message(format string, args ...any) {
	fmt.Fprintf(s.err, "gcsup-fleet: %s\n", process.Message(format, args...))
}

// newRoot returns the tree of commands. started becomes true when the command line is
// parsed and the command starts.
func newRoot(std stdio) (root *cobra.Command, started *bool) {
	started = new(bool)
	root = &cobra.Command{
		Use:   "gcsup-fleet",
		Short: "Upload one tree to Cloud Storage with many machines",
		Long: `gcsup-fleet uploads a tree with many machines that have the same files and may be taken
away at any time. For most uploads gcsup cp --shard is enough: see docs/how-to/many-machines.md.

  gcsup-fleet submit -r /data gs://my-bucket/ --nats tls://nats:4222 \
    --sign-key sign.key
  gcsup-fleet work --state gs://my-state/uploads --state-key-file state.key \
    --root /data --bucket my-bucket --verify-key verify.pem \
    --nats tls://nats:4222

Without --nats, the queue is in a directory of this machine: gcsup-fleet up runs a server
and workers on it.

A flag can also be set by its environment variable: GCSUP_STATE is the value of --state
unless that is given.

Exit codes: 0 done; 64 usage; 65 files failed; 66 no input; 69 unavailable; 74 local I/O;
75 temporary, run again; 77 permission; 78 configuration.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cmdline.NoCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			*started = true
			return envRules.Set(cmd)
		},
	}
	root.SetOut(std.out)
	root.SetErr(std.err)
	root.SetFlagErrorFunc(cmdline.FlagError)
	help := &cmdline.Help{Groups: groups(), Columns: cmdline.Columns(std.out)}
	root.SetHelpCommand(cmdline.NewHelp(help))
	root.AddCommand(newSubmit(std), newWork(std), newUp(std), newStatus(std), newRetry(std), newForget(std), newCancel(std), newDrain(std), newLimit(std), newVersion(std))
	help.Install(root)
	root.CompletionOptions.HiddenDefaultCmd = true
	return root, started
}

// groups returns the groups of the flags in the help: those of gcsup, and one for the queue.
func groups() []cmdline.Group {
	return append(slices.Clone(cmdline.Groups), cmdline.Group{Title: "Queue", About: "the NATS servers", Flags: []string{
		"nats", "nats-ca", "nats-cert", "nats-key", "nats-creds", "nats-replicas", "sign-key", "verify-key", "fleet", "fleet-dir", "ack-wait",
	}})
}

// envRules decide which environment variables set flags, and which flags exclude each other.
var envRules = cmdline.Rules{
	None:      []string{"help"},
	Exclusive: [][]string{{"files-from", "recursive"}, {"state-key-file", "state-unsealed"}, cmdline.ObjectExclusive, cmdline.TreeExclusive},
}
