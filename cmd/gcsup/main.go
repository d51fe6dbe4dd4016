// Command gcsup uploads files and streams to Cloud Storage, and resumes
// interrupted uploads. See docs/how-to, or run gcsup help.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"gcsup/internal/cli/cmdline"
	"gcsup/internal/cli/exit"
	"gcsup/internal/cli/process"
	"gcsup/internal/cli/screen"
)

func main() {
	os.Exit(process.Run(func(ctx context.Context) int {
		process.StartedAs(os.Args[0])
		return execute(ctx, os.Args[1:], stdio{os.Stdin, os.Stdout, os.Stderr})
	}))
}

// execute runs one command line and returns its exit code. It prints an error that the
// command has not printed.
func execute(ctx context.Context, args []string, std stdio) int {
	root, started := newRoot(std)
	out := &output{Writer: std.out}
	root.SetOut(out) // before the completion command, which keeps the writer that it finds
	checkCompletionArgs(root)
	root.SetArgs(args)
	cmd, err := root, cmdline.CheckHeaders(root, args)
	if err == nil {
		cmd, err = root.ExecuteContextC(withArgs(ctx, args))
	}
	if out.err != nil && (err == nil || errors.Is(err, out.err)) { // cobra drops it or returns it
		err = fmt.Errorf("standard output: %w", out.err)
	}
	if err == nil {
		return exit.OK
	}
	if code, ok := errors.AsType[exit.Printed](err); ok {
		return int(code)
	}
	if !*started && !errors.Is(err, exit.ErrUsage) { // an error of cobra
		err = exit.Usagef("%s; see %s", strings.Join(strings.Fields(err.Error()), " "), cmdline.HelpOf(root))
	}
	err = cmdline.Explain(cmd, err)
	screen.NewConsole(std.err, false).FailBlock(process.PrintableError(exit.Text(err), err))
	return exit.Classify(err).Code
}

// output records the first write error, because cobra drops the errors of help.
type output struct {
	io.Writer
	err error
}

func (o *output) Write(p []byte) (int, error) {
	n, err := o.Writer.Write(p)
	if o.err == nil {
		o.err = err
	}
	return n, err
}

// newRoot returns the tree of commands. started becomes true when the command
// line is parsed and the command starts.
func newRoot(std stdio) (root *cobra.Command, started *bool) {
	started = new(bool)
	showVersion := false
	root = &cobra.Command{
		Use:   "gcsup",
		Short: "Upload to Cloud Storage, and resume interrupted uploads",
		Long: `gcsup sends files and streams to Cloud Storage as resumable uploads. After an
interruption at any moment it sends only the bytes that the service had not yet
committed. Files of at most 8 MiB start over, and so does a stream without
--spool. A second cp -r skips finished files. cp without -r, or with a flag that
sets an attribute, skips them only with --manifest or --skip-identical.
--parallel=auto may send up to 16 MiB of a large file twice.

The object is byte-identical to the source, or it does not appear. --gzip stores
the compressed source. If a program fails while it writes to a pipe, gcsup
publishes what it wrote: a truncated object. If gcsup runs the program, it
publishes nothing then: gcsup cp gs://my-bucket/db.sql -- pg_dump db.`,
		Example: `  gcsup cp disk.img gs://my-bucket/
  gcsup cp -r photos gs://my-bucket/backup/
  gcsup resume --all`,
		Args: cmdline.NoCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if showVersion {
				return printVersion(std.out)
			}
			return cmd.Help()
		},
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			*started = true
			if completes(cmd) {
				plainUsages(cmd.Root())
				return nil
			}
			file, err := setDefaults(cmd)
			cmd.SetContext(withConfig(cmd.Context(), file))
			warnOfSettings(cmd, std.err, file, os.Environ()) // --quiet may be from the environment
			return err
		},
	}
	root.SetIn(std.in)
	root.SetErr(std.err)
	root.SetFlagErrorFunc(cmdline.FlagError)
	root.Flags().BoolVar(&showVersion, "version", false, "print the version")
	help := &cmdline.Help{Groups: cmdline.Groups, Topics: topics(), Columns: cmdline.Columns(std.out)}
	root.SetHelpCommand(cmdline.NewHelp(help))
	root.AddCommand(
		newCp(std),
		newSync(std),
		newResume(std),
		newUploads(std),
		newVerify(std),
		newOutbox(std),
		newDoctor(std),
		newEmulator(std),
		newSimulate(std),
	)
	addConfig(root)
	root.AddCommand(newVersion(std)) // which works without a configuration
	help.Install(root)
	addCompletions(root)
	return root, started
}
