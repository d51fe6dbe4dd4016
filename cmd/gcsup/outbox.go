package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"gcsup/internal/cli/cmdline"
	"gcsup/internal/cli/exit"
	"gcsup/internal/cli/process"
	"gcsup/internal/cli/screen"
	"gcsup/internal/cli/shell"
	"gcsup/session"
	"gcsup/upload/outbox"
)

func newOutbox(std stdio) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "outbox",
		Short: "Upload what appears in a directory, and then remove it",
		Long: `outbox uploads the files that appear in a directory. Each file is removed when its
object exists and was compared with it. A crash at any moment loses no file.`,
		Example: `  gcsup outbox run /var/spool/out gs://my-bucket/in/
  gcsup outbox put report.csv /var/spool/out
  gcsup outbox status /var/spool/out`,
		Args: cmdline.NoCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newOutboxRun(std), newOutboxPut(), newOutboxStatus(std), newOutboxRetry(std))
	return cmd
}

func newOutboxPut() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:   "put FILE DIR",
		Short: "Copy a file durably into an outbox",
		Long: `put copies FILE into the outbox DIR. When it exits with 0, it has printed nothing, the
copy survives a power loss, and outbox run uploads it, now or later.

If DIR has a file of that name already, put exits with 0 if the content is the same,
and with 73 if it is not. It replaces no file. PostgreSQL expects that of its
archive_command.`,
		Example: `  gcsup outbox put report.csv /var/spool/out
  gcsup outbox put /tmp/x.csv /var/spool/out --name 2026/report.csv
  archive_command = 'gcsup outbox put %p /var/spool/wal'`,
		Args: cmdline.Exactly(2, "FILE and DIR"),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) == 1 {
				return nil, cobra.ShellCompDirectiveFilterDirs
			}
			return nil, cobra.ShellCompDirectiveDefault
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if name == "" {
				name = filepath.Base(args[0])
			}
			if err := outbox.CheckName(filepath.ToSlash(name)); err != nil {
				return exit.WithKind(err, exit.ErrUsage)
			}
			err := outbox.Put(args[1], args[0], filepath.ToSlash(name))
			switch {
			case errors.Is(err, fs.ErrExist):
				return exit.WithKind(err, session.ErrPrecondition)
			case errors.Is(err, fs.ErrNotExist):
				return exit.WithKind(err, exit.ErrSource)
			}
			return err
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "`NAME` of the file in the outbox, such as a/b (default: the name of FILE)")
	return cmd
}

func newOutboxRetry(std stdio) *cobra.Command {
	return &cobra.Command{
		Use:   "retry DIR [NAME...]",
		Short: "Move files that failed back into an outbox",
		Long: `retry moves files from DIR/.failed back into the outbox DIR, so that they are uploaded
again: all, or those with the given names below .failed. It replaces no file of the
outbox.`,
		Example: `  gcsup outbox retry /var/spool/out
  gcsup outbox retry /var/spool/out 2026/report.csv`,
		Args:              cmdline.AtLeast(1, "DIR, and then the names of files in DIR/.failed"),
		ValidArgsFunction: completeFailed,
		RunE: func(_ *cobra.Command, args []string) error {
			con := screen.NewConsole(std.err, false)
			moved, err := outbox.Retry(args[0], args[1:]...)
			for _, f := range moved {
				con.Message("%s: moved back", filepath.Join(args[0], filepath.FromSlash(f.Name)))
			}
			switch {
			case errors.Is(err, fs.ErrExist):
				return exit.WithKind(err, session.ErrPrecondition)
			case errors.Is(err, fs.ErrNotExist):
				return exit.WithKind(err, exit.ErrSource)
			case err == nil && len(moved) == 0:
				con.Message("no file has failed")
			}
			return err
		},
	}
}

// completeFailed offers directories, and then the files that failed.
func completeFailed(_ *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return nil, cobra.ShellCompDirectiveFilterDirs
	}
	failed, err := outbox.Failed(args[0])
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var offered []cobra.Completion
	for _, f := range failed {
		if strings.HasPrefix(f.File, prefix) {
			offered = append(offered, cobra.CompletionWithDesc(f.File, process.Printable(f.Kind)))
		}
	}
	return offered, cobra.ShellCompDirectiveNoFileComp
}

// retryCommand returns the command that moves a file back.
func retryCommand(dir, name string) string {
	words := []string{process.Words(), "outbox", "retry", shell.Quote(process.Absolute(dir))}
	if name != "" {
		words = append(words, shell.Quote(name))
	}
	return strings.Join(words, " ")
}

// missingOutbox adds advice to the error for a directory that does not exist.
func missingOutbox(dir string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return exit.WithKind(fmt.Errorf("%w: create the directory %s first", err, dir), exit.ErrSource)
	}
	return err
}
