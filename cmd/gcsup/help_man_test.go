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

	"gcsup/internal/require"
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
	require.NoError(t, os.MkdirAll(dir, 0o777))
	root, _ := newRoot(stdio{strings.NewReader(""), io.Discard, io.Discard})
	root.InitDefaultCompletionCmd("man")
	writeManPages(t, root, dir, manDate(t))
	var pages []string
	for _, topic := range topics() {
		pages = append(pages, filepath.Join(dir, topicName(topic)+".7"))
		require.NoError(t, os.WriteFile(pages[len(pages)-1], []byte(topicPage(topic, manDate(t))), 0o666))
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
		sections := []string{"NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT STATUS", "ENVIRONMENT", "FILES", "EXAMPLES", "SEE ALSO"}
		if cmd.HasParent() && cmd.Parent().Name() == "completion" { // whose texts are cobra's
			sections = slices.DeleteFunc(sections, func(title string) bool { return title == "EXAMPLES" })
		}
		for _, title := range sections {
			if !strings.Contains(string(page), "\n.SH "+title+"\n") {
				t.Errorf("%s: no section %s", filepath.Base(name), title)
			}
		}
		pages = append(pages, name)
	}
	renderPages(t, pages)
	checkSeeAlso(t, dir)
}

// checkSeeAlso checks that each page names others, that they exist, and that each page is named by one.
func checkSeeAlso(t *testing.T, dir string) {
	t.Helper()
	pages, err := os.ReadDir(dir)
	require.NoError(t, err)
	named := map[string]bool{}
	for _, page := range pages {
		text, err := os.ReadFile(filepath.Join(dir, page.Name()))
		require.NoError(t, err)
		_, also, _ := strings.Cut(string(text), "\n.SH SEE ALSO\n")
		for other := range strings.SplitSeq(strings.ReplaceAll(strings.TrimSpace(also), `\-`, "-"), ", ") {
			name, section, _ := strings.Cut(strings.TrimSuffix(other, ")"), "(")
			named[name] = true
			if _, err := os.Stat(filepath.Join(dir, name+"."+section)); err != nil {
				t.Errorf("%s names %s: %v", page.Name(), other, err)
			}
		}
	}
	for _, page := range pages {
		if name := strings.TrimSuffix(page.Name(), filepath.Ext(page.Name())); !named[name] {
			t.Errorf("no page names %s", name)
		}
	}
}

// renderPages checks that groff renders pages without a warning. man would start it once for each page.
func renderPages(t *testing.T, pages []string) {
	t.Helper()
	groff, err := exec.LookPath("groff")
	if err != nil {
		t.Log("groff is not installed: the pages are not rendered")
		return
	}
	// One at a time, as users read them: in a long document, a cell of a table may not fit on what is left of a page.
	for _, page := range pages {
		render := exec.Command(groff, "-ww", "-K", "utf8", "-t", "-man", "-Tutf8", page)
		var warnings strings.Builder
		render.Stderr = &warnings
		if err := render.Run(); err != nil || warnings.Len() > 0 {
			t.Errorf("groff %s: %v: %s", filepath.Base(page), err, warnings.String())
		}
	}
}

// writeManPages writes the pages of cmd and of the commands below it.
func writeManPages(t *testing.T, cmd *cobra.Command, dir, date string) {
	t.Helper()
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			writeManPages(t, c, dir, date)
		}
	}
	cmd.InitDefaultHelpFlag()
	require.NoError(t, os.WriteFile(filepath.Join(dir, manName(cmd)+".1"), []byte(manPage(cmd, date)), 0o666))
}
