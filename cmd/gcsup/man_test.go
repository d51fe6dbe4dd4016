package main

import (
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"
)

var manDir = flag.String("man", "", "write the man pages to this directory")

// TestManPages generates the man pages. It is a test because package main cannot
// be imported, and because gcsup must not link the generator. make man calls it.
func TestManPages(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("renders all pages")
	}
	dir := *manDir
	if dir == "" {
		dir = t.TempDir()
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	root, _ := newRoot(stdio{strings.NewReader(""), io.Discard, io.Discard})
	root.InitDefaultCompletionCmd("man")
	plain(root)
	// The month of the pages is that of SOURCE_DATE_EPOCH.
	header := &doc.GenManHeader{Section: "1", Source: "gcsup", Manual: "gcsup"}
	if err := doc.GenManTree(root, header, dir); err != nil {
		t.Fatal(err)
	}
	man, err := exec.LookPath("man")
	if err != nil {
		t.Log("man is not installed: the pages are not rendered")
	}
	for _, cmd := range append(leaves(root), root) {
		if cmd != root && !cmd.IsAvailableCommand() { // help has no page
			continue
		}
		name := filepath.Join(dir, strings.ReplaceAll(cmd.CommandPath(), " ", "-")+".1")
		page, err := os.ReadFile(name)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, want := range []string{".SH NAME", ".SH SYNOPSIS", ".SH OPTIONS"} {
			if !strings.Contains(string(page), want) {
				t.Errorf("%s: no %q", filepath.Base(name), want)
			}
		}
		if man == "" {
			continue
		}
		render := exec.Command(man, "--warnings", "-E", "UTF-8", "-l", "-Tutf8", name)
		render.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "MANROFFSEQ=", "MANWIDTH=80")
		var warnings strings.Builder
		render.Stderr = &warnings
		if err := render.Run(); err != nil || warnings.Len() > 0 {
			t.Errorf("%s: man: %v: %s", filepath.Base(name), err, warnings.String())
		}
	}
}

// plain prepares a command and its subcommands for package doc, which takes all
// texts as Markdown and prints a date in a footer.
func plain(cmd *cobra.Command) {
	escape := strings.NewReplacer("*", `\*`, "_", `\_`, "<", `\<`).Replace
	cmd.DisableAutoGenTag = true
	cmd.Long = escape(cmd.Long)
	for _, flags := range []*pflag.FlagSet{cmd.Flags(), cmd.PersistentFlags()} {
		flags.VisitAll(func(f *pflag.Flag) {
			name, usage := pflag.UnquoteUsage(f)
			f.Usage = escape(usage)
			if f.Value.Type() == "bool" {
				return
			}
			if !slices.Contains([]string{"", "[]", "0", "0s"}, f.DefValue) && !strings.Contains(usage, "(default") {
				f.Usage += " (default " + f.DefValue + ")"
			}
			f.DefValue, f.Value = name, unquoted{f.Value} // --flag=NAME
		})
	}
	for _, c := range cmd.Commands() {
		plain(c)
	}
}

// unquoted is a flag's value that package doc does not print in quotes.
type unquoted struct{ pflag.Value }

func (unquoted) Type() string { return "value" }
