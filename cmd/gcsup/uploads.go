package main

import (
	"github.com/spf13/cobra"

	"gcsup/internal/cli/cmdline"
)

func newUploads(std stdio) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "uploads",
		Short: "List, check, delete and move saved uploads",
		Example: `  gcsup uploads list
  gcsup uploads prune`,
		Args: cmdline.NoCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		newUploadsList(std), newUploadsShow(std), newUploadsPrune(std), newUploadsRm(std), newUploadsCancel(std),
		newUploadsExport(std), newUploadsImport(std),
	)
	return cmd
}
