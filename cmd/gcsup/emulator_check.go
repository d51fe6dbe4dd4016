package main

import (
	"flag"

	"github.com/spf13/cobra"

	"gcsup/internal/cli/cmdline"
	"gcsup/internal/cli/exit"
	"gcsup/internal/emulator"
)

func newCheckClient(std stdio) *cobra.Command {
	var c emulator.Check
	cmd := &cobra.Command{
		Use:   "check-client -- COMMAND [ARG...]",
		Short: "Find the faults of a client that uploads to Cloud Storage",
		Long: `check-client runs COMMAND once for each script, against an emulator with a fault of
its own. A script is for example a reply that is lost, a session that is gone, or a
kill in the middle and a second run. COMMAND must upload one file. In its arguments,
these words are replaced:

  {file}              the file
  {bucket}, {object}  where it must go
  {dir}               a directory that both runs of a script share
  {endpoint}          the URL of the emulator, as in STORAGE_EMULATOR_HOST
  {ca}                with --tls: the file of the certificate authority

The verdict has three parts: whether the object is right, whether the exit code
reported what happened, and whether the requests kept to the protocol. What the
client prints does not count. A script whose situation the client does not reach, for example
one about sessions if it makes none, is unmet. check-client exits with 65 if the
client failed a script. Each script names the fact about Cloud Storage that it
assumes, and where that is documented or was observed; see --list.`,
		Example: `  gcsup emulator check-client -- ./upload.sh {file} {bucket} {object}
  gcsup emulator check-client --jobs 8 -- ./upload.py {file} {bucket} {object}`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && cmd.ArgsLenAtDash() != 0 {
				return exit.Usagef("emulator check-client: give the command after --; see %s", cmdline.HelpOf(cmd))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			failed, err := c.Run(cmd.Context(), args, std.out)
			switch {
			case err != nil:
				return emulatorError(err)
			case failed:
				return exit.Printed(exit.Data)
			}
			return nil
		},
	}
	plain := flag.NewFlagSet(cmd.Name(), flag.ContinueOnError)
	c.Add(plain)
	for _, name := range emulator.CheckNames() {
		cmd.Flags().AddGoFlag(plain.Lookup(name))
	}
	cmdline.Common(cmd.Flags(), emulator.CheckNames()...)
	return cmd
}
