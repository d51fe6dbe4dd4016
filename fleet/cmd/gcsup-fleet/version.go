package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"gcsup/internal/cli/cmdline"
)

func newVersion(std stdio) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cmdline.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			version, revision := "(devel)", "unknown"
			if info, ok := debug.ReadBuildInfo(); ok {
				version = cmp.Or(info.Main.Version, version)
				for _, s := range info.Settings {
					if s.Key == "vcs.revision" {
						revision = s.Value
					}
				}
			}
			_, err := fmt.Fprintf(std.out, "gcsup-fleet %s (%s) %s %s/%s\n", version, revision, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}
