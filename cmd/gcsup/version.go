package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"gcsup/internal/cli/cmdline"
	"gcsup/internal/cli/result"
)

func newVersion(std stdio) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: `  gcsup version --json`,
		Args:    cmdline.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if asJSON {
				return result.Print(std.out, version())
			}
			return printVersion(std.out)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func printVersion(w io.Writer) error {
	v := version()
	_, err := fmt.Fprintf(w, "gcsup %s (%s) %s %s/%s\n", v.Version, v.Revision, v.Go, v.OS, v.Arch)
	return err
}

type versionLine struct {
	V        int    `json:"v"`
	Version  string `json:"version"`
	Revision string `json:"revision"` // of the source; "+dirty" if it had changes
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}

// stampedVersion and stampedRevision are set by the linker in a release: see
// internal/dist. They are empty in other builds.
var stampedVersion, stampedRevision string

// version returns the build information of the program.
func version() versionLine {
	v := versionLine{V: 1, Version: "(devel)", Revision: "unknown", Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	if stampedVersion != "" {
		v.Version, v.Revision = stampedVersion, stampedRevision
		return v
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if info.Main.Version != "" {
		v.Version = info.Main.Version
	}
	dirty := ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			v.Revision = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "+dirty"
		}
	}
	v.Revision += dirty
	return v
}
