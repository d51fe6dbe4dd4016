package main

import (
	"errors"
	"flag"

	"github.com/spf13/cobra"

	"gcsup/fakegcs"
	"gcsup/internal/cli/cmdline"
	"gcsup/internal/cli/exit"
	"gcsup/internal/emulator"
	"gcsup/session/state"
)

func newEmulator(std stdio) *cobra.Command {
	var f emulator.Flags
	cmd := &cobra.Command{
		Use:   "emulator",
		Short: "Serve an emulator of Cloud Storage",
		Long: `emulator serves Cloud Storage on this machine, for tests and demonstrations. When
it is ready it prints one line, a command that makes clients use it:

  export STORAGE_EMULATOR_HOST=http://HOST:PORT

Clients on this machine can use that address even if --addr names all addresses.
Requests that the emulator does not implement are refused with status 400, and
reported once on standard error. The emulator was compared with recorded replies
of Cloud Storage, but never run beside it.

It ends on SIGINT, SIGTERM or SIGHUP. With --tls it creates a certificate authority, and
prints the path of its file to standard error. It requires no credentials, except with
--require-token: then it creates a credentials file, and prints its path.

While it runs, HTTP requests to /_fakegcs/ show and change the fault plan, the
requests so far and the clock; see the documentation of package fakegcs.`,
		Example: `  gcsup emulator --create-buckets
  gcsup emulator --addr 127.0.0.1:9000 --dir objects --random-faults 20`,
		Args: cmdline.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return emulatorInUse(emulatorError(f.Serve(cmd.Context(), cmd.Flags().Changed, std.out, std.err)))
		},
	}
	plain := flag.NewFlagSet(cmd.Name(), flag.ContinueOnError)
	f.Add(plain)
	for _, name := range emulator.Names() {
		cmd.Flags().AddGoFlag(plain.Lookup(name))
	}
	cmdline.Common(cmd.Flags(), "addr", "dir", "seed", "faults", "random-faults", "create-buckets", "tls", "latency", "rate")
	cmd.AddCommand(newCheckClient(std))
	return cmd
}

// emulatorError classifies the errors of package emulator.
func emulatorError(err error) error {
	if wrong, ok := errors.AsType[*emulator.UsageError](err); ok {
		return exit.Usagef("%w", wrong)
	}
	if unread, ok := errors.AsType[*emulator.FileError](err); ok {
		return exit.WithKind(unread, exit.ErrSource)
	}
	return err
}

// emulatorInUse classifies the error that another process uses the directory of an emulator.
func emulatorInUse(err error) error {
	if errors.Is(err, fakegcs.ErrInUse) {
		return exit.WithKind(err, state.ErrInUse)
	}
	return err
}
