package main

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
)

// completeIDs offers the IDs of saved uploads to the shell, each with its source
// and destination.
func (f *targetFlags) completeIDs(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	store, err := f.existingStore()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	if store == nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer store.Close()
	ids, err := store.List(cmd.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var offered []cobra.Completion
	for _, id := range ids {
		if slices.Contains(args, id) {
			continue
		}
		about := ""
		if t, err := store.Load(cmd.Context(), id); err == nil {
			about = fmt.Sprintf("%s to %s", filepath.Base(t.SourcePath), path.Join(t.Spec.Bucket, t.Spec.Object))
		}
		offered = append(offered, cobra.CompletionWithDesc(id, printable(about)))
	}
	return offered, cobra.ShellCompDirectiveNoFileComp
}
