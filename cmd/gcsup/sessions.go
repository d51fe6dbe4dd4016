package main

import (
	"github.com/spf13/cobra"

	"gcsup/internal/cli/cmdline"
)

func newSessions(std stdio) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sessions",
		Short: "List, check, delete and move saved uploads",
		Example: `  gcsup sessions list
  gcsup sessions prune`,
		Args: cmdline.NoCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		newSessionsList(std), newSessionsShow(std), newSessionsPrune(std), newSessionsRm(std), newSessionsCancel(std),
		newSessionsExport(std), newSessionsImport(std),
	)
	return cmd
}
